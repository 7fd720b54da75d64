-- Say how a step ended. in: run_id, step, ended_at, outcome, counts and findings (jsonb), error
UPDATE kb.run_steps
SET ended_at = :'ended_at'::timestamptz, outcome = :'outcome'::text, counts = :'counts'::jsonb,
    findings = :'findings'::jsonb, error = :'error'::text
WHERE run_id = :'run_id'::bigint AND step = :'step'::integer
