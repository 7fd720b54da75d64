-- The last night that did something, and the last good one. No row before the first.
-- out: run_id, started_at, ended_at, outcome, summary, good_at (NULL: never), scheduled (some night had its hour)
SELECT run_id, started_at, ended_at, outcome, summary,
       (SELECT max(started_at) FROM kb.runs WHERE outcome = 'ok') AS good_at,
       EXISTS (SELECT FROM kb.runs WHERE due_at IS NOT NULL) AS scheduled
FROM kb.runs
WHERE outcome <> 'skipped'
ORDER BY started_at DESC, run_id DESC
LIMIT 1
