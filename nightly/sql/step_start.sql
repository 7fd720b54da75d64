-- Record a step before it does anything. in: run_id, step, job, collection, started_at
INSERT INTO kb.run_steps (run_id, step, job, collection, started_at)
VALUES (:'run_id'::bigint, :'step'::integer, :'job'::text, :'collection'::text, :'started_at'::timestamptz)
ON CONFLICT (run_id, step) DO NOTHING
