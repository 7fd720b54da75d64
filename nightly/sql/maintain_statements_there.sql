-- Whether pg_stat_statements is installed. out: schema (where its view lies; no row: not there)
SELECT n.nspname AS schema
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pg_stat_statements'
