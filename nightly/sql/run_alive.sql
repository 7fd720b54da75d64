-- Whether a run still counts as going on: another one may have taken over while the database was away.
-- in: run_id. out: alive
SELECT outcome = 'running' AS alive FROM kb.runs WHERE run_id = :'run_id'::bigint
