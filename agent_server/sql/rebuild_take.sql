-- One re-embedding or reindexing of a collection at a time, for as long as this session lasts.
-- in: collection. out: taken
SELECT pg_try_advisory_lock(hashtextextended('rebuild ' || :'collection'::text, 0)) AS taken
