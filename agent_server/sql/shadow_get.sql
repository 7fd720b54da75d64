-- The column that a re-embedding fills beside the one that is searched; no row when none is under way.
-- out: contract (JSON of the model that it is filled for, '' when unknown),
--      indexed (whether a valid index stands on it)
SELECT coalesce(col_description(a.attrelid, a.attnum), '') AS contract,
       EXISTS (SELECT FROM pg_index i JOIN pg_class k ON k.oid = i.indexrelid
               WHERE i.indrelid = a.attrelid AND k.relname = 'chunks_embedding_next' AND i.indisvalid) AS indexed
FROM pg_attribute a
WHERE a.attrelid = 'chunks'::regclass AND a.attname = 'embedding_next' AND NOT a.attisdropped
