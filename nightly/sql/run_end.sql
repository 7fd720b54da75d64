-- Say how a run ended. in: run_id, ended_at, outcome, summary
UPDATE kb.runs SET ended_at = :'ended_at'::timestamptz, outcome = :'outcome'::text, summary = :'summary'::text
WHERE run_id = :'run_id'::bigint
