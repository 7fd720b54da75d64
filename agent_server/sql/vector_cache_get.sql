-- Vectors embedded before, by content. in: hashes (bytea array). uses: vector_cache_pkey
SELECT content_hash, embedding::text AS embedding FROM kb.vector_cache WHERE content_hash = ANY (:'hashes'::bytea[])
