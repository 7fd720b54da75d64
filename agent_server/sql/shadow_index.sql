-- The dense index of the vectors to come, as hnsw_create.sql makes it. Neither searches nor ingestion wait for it.
CREATE INDEX CONCURRENTLY chunks_embedding_next ON chunks
USING hnsw (embedding_next halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)
WHERE canonical
