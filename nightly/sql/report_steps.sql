-- The steps of some runs, in order. in: run_ids (bigint array). uses: run_steps_pkey
SELECT run_id, step, job, collection, started_at, ended_at, outcome, counts, findings, error
FROM kb.run_steps
WHERE run_id = ANY (:'run_ids'::bigint[])
ORDER BY run_id DESC, step
