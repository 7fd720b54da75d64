-- Runs that say 'running' while the lock is in other hands have died, with the steps they were at. Run it holding the
-- lock. When they ended is not known. in: but (the run that has the lock), summary. out: run_id, due_at, host, pid
WITH dead AS (
    UPDATE kb.runs SET outcome = 'died', summary = :'summary'::text
    WHERE outcome = 'running' AND run_id <> :'but'::bigint
    RETURNING run_id, due_at, started_at, host, pid, summary
),
steps AS (
    UPDATE kb.run_steps s SET outcome = 'died' FROM dead WHERE s.run_id = dead.run_id AND s.outcome = 'running'
)
SELECT * FROM dead ORDER BY run_id
