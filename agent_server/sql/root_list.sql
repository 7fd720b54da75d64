-- The folders that were ingested.
SELECT root, path FROM roots ORDER BY root
