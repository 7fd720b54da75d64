-- One run. in: run_id (0: the newest that did something). out: its row, or none
SELECT run_id, due_at, started_at, ended_at, outcome, host, pid, settings, summary
FROM kb.runs
WHERE CASE WHEN :'run_id'::bigint = 0 THEN outcome <> 'skipped' ELSE run_id = :'run_id'::bigint END
ORDER BY run_id DESC
LIMIT 1
