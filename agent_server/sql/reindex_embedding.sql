-- A second dense index beside the standing one, as hnsw_create.sql makes it.
CREATE INDEX CONCURRENTLY chunks_embedding_new ON chunks
USING hnsw (embedding halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)
WHERE canonical
