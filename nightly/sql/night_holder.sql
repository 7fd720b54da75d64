-- Who holds the lock of night_lock.sql: the run that is going on, or, before it has its row, the session alone.
-- in: but (run that asks; 0: none). out: since, run_id, host, pid (NULL where not known); no row: nobody holds it
WITH name AS (SELECT hashtextextended('nightly', 0) AS key)
SELECT coalesce(r.started_at, a.backend_start) AS since, r.run_id, r.host, r.pid
FROM name
JOIN pg_locks l ON l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid::bigint = (name.key >> 32) & 4294967295 AND l.objid::bigint = name.key & 4294967295
JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN kb.runs r ON r.outcome = 'running' AND r.run_id <> :'but'::bigint
ORDER BY r.run_id DESC NULLS LAST
LIMIT 1
