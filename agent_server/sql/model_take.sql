-- Take the right to switch the collection's model, when no ingestion is under way; those that want to start meanwhile
-- wait behind. in: collection
SELECT pg_advisory_lock(hashtextextended('model ' || lower(:'collection'::text), 0))
