-- Forget vectors by content: what they were made by says something else now. in: hashes (bytea array)
-- uses: vector_cache_pkey
DELETE FROM kb.vector_cache WHERE content_hash = ANY (:'hashes'::bytea[])
