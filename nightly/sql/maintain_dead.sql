-- Tables of the collection with many dead rows. in: least, share (of all rows). out: name, dead, live
SELECT relname AS name, n_dead_tup AS dead, n_live_tup AS live
FROM pg_stat_user_tables
WHERE schemaname = current_schema() AND n_dead_tup >= :'least'::bigint
  AND n_dead_tup >= :'share'::double precision * (n_dead_tup + n_live_tup)
ORDER BY n_dead_tup DESC, relname
