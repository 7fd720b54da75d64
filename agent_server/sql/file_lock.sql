-- Take the lock of one file's transaction: who writes a file, or reads it to derive something, has it alone.
-- in: collection, source
SELECT pg_advisory_xact_lock(hashtextextended('file ' || :'collection'::text || ' ' || :'source'::text, 0))
