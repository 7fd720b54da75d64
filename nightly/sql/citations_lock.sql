-- One refresh of a collection's citations at a time: another waits until the connection that took this is closed.
-- in: collection
SELECT pg_advisory_lock(hashtextextended('citations ' || :'collection'::text, 0))
