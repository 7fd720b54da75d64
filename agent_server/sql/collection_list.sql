-- All collections by name, each with whether a valid HNSW index stands.
SELECT c.*,
       EXISTS (SELECT FROM pg_index i JOIN pg_class k ON k.oid = i.indexrelid
               WHERE i.indrelid = to_regclass(format('%I.chunks', c.schema_name))
                 AND k.relname = 'chunks_embedding' AND i.indisvalid) AS has_hnsw,
       (SELECT attnum FROM pg_attribute
        WHERE attrelid = to_regclass(format('%I.chunks', c.schema_name)) AND attname = 'embedding') AS vector_column
FROM kb.collections c
ORDER BY lower(c.name)
