-- How much room the dense indexes take, over all collections. out: total_bytes, largest_bytes
SELECT coalesce(sum(pg_relation_size(k.oid)), 0)::bigint AS total_bytes,
       coalesce(max(pg_relation_size(k.oid)), 0)::bigint AS largest_bytes
FROM pg_class k
JOIN pg_am a ON a.oid = k.relam AND a.amname = 'hnsw'
JOIN kb.collections c ON c.schema_name::name = (SELECT nspname FROM pg_namespace WHERE oid = k.relnamespace)
