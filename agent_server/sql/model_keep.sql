-- While this session lasts, no re-embedding may switch the collection's model; ingestions
-- hold it together. in: collection
SELECT pg_advisory_lock_shared(hashtextextended('model ' || lower(:'collection'::text), 0))
