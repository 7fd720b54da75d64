-- A sample of the vectors that a collection holds, to ask with where too few searches are recorded.
-- in: seed, limit. out: chunk_id, vector (pgvector's text)
SELECT chunk_id, embedding::text AS vector
FROM chunks
WHERE canonical AND embedding IS NOT NULL
ORDER BY md5(chunk_id || :'seed'::text)
LIMIT :'limit'::integer
