-- The newest runs of the night, newest first. in: limit. uses: runs_started
SELECT run_id, due_at, started_at, ended_at, outcome, summary
FROM kb.runs
ORDER BY started_at DESC, run_id DESC
LIMIT :'limit'::integer
