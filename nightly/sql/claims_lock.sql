-- One transaction at a time changes a collection's claims by their words. in: collection
SELECT pg_advisory_xact_lock(hashtextextended('claims ' || :'collection'::text, 0))
