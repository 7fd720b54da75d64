-- Take the locks of one file's transaction: its source first, then the passages it changes, sorted. A lock per
-- passage would exhaust shared memory in a large file, so passages share 1,024 locks by their hash.
-- in: collection, source, passages (hash % 1024, as integers)
SELECT pg_advisory_xact_lock(hashtextextended('file ' || :'collection'::text || ' ' || :'source'::text, 0))
UNION ALL
SELECT pg_advisory_xact_lock(hashtext('passages ' || :'collection'::text), slot)
FROM (SELECT DISTINCT slot FROM unnest(:'passages'::integer[]) AS slot ORDER BY slot) AS slots
