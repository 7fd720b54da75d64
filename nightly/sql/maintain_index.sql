-- The dense index and what it should hold. out: pages and rows (entries it needs), dimensions, m (links of an
-- element); no row without a valid index
SELECT pg_relation_size(k.oid) / current_setting('block_size')::bigint AS pages,
       (SELECT count(*) FROM chunks WHERE canonical AND embedding IS NOT NULL) AS rows,
       (SELECT a.atttypmod FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attname = 'embedding') AS dimensions,
       coalesce((SELECT option_value::integer FROM pg_options_to_table(k.reloptions) WHERE option_name = 'm'), 16) AS m
FROM pg_index i
JOIN pg_class k ON k.oid = i.indexrelid
WHERE i.indrelid = 'chunks'::regclass AND k.relname = 'chunks_embedding' AND i.indisvalid
