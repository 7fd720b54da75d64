-- The steps of a run, in order. in: run_id. uses: run_steps_pkey
SELECT step, job, collection, started_at, ended_at, outcome, counts, findings, error
FROM kb.run_steps WHERE run_id = :'run_id'::bigint ORDER BY step
