-- Remember vectors by content; sorted, so that two writers never wait for each other in a circle.
-- in: hashes (bytea array), embeddings (halfvec array)
INSERT INTO kb.vector_cache (content_hash, embedding)
SELECT hash, embedding FROM unnest(:'hashes'::bytea[], :'embeddings'::halfvec[]) AS t(hash, embedding) ORDER BY hash
ON CONFLICT DO NOTHING
