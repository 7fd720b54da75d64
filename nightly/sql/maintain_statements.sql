-- The statements that a collection's searches spent most time in, since the statistics were last reset.
-- in: "schema" (of the extension), role, limit. out: query, calls, total_ms, mean_ms, rows
SELECT s.query, s.calls, s.total_exec_time AS total_ms, s.mean_exec_time AS mean_ms, s.rows
FROM :"schema".pg_stat_statements s
WHERE s.userid = (SELECT oid FROM pg_roles WHERE rolname = :'role'::text)
  AND s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
ORDER BY s.total_exec_time DESC
LIMIT :'limit'::bigint
