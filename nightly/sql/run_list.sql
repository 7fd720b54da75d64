-- The newest runs, newest first, with how their steps went. in: limit
SELECT r.run_id, r.due_at, r.started_at, r.ended_at, r.outcome, r.host, r.pid, r.settings, r.summary,
       count(s.step) AS steps, count(s.step) FILTER (WHERE s.outcome = 'failed') AS failed
FROM (SELECT * FROM kb.runs ORDER BY run_id DESC LIMIT :'limit'::bigint) r
LEFT JOIN kb.run_steps s USING (run_id)
GROUP BY r.run_id, r.due_at, r.started_at, r.ended_at, r.outcome, r.host, r.pid, r.settings, r.summary
ORDER BY r.run_id DESC
