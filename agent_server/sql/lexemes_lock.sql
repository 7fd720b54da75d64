-- One run at a time merges counts, restates vectors and builds indexes of a collection. in: collection
SELECT pg_advisory_xact_lock(hashtextextended('index ' || :'collection'::text, 0))
