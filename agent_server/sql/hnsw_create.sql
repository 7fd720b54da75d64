-- The dense index, over the passages that are searched. Cosine, as hybrid.sql asks (<=>).
CREATE INDEX chunks_embedding ON chunks USING hnsw (embedding halfvec_cosine_ops) WITH (m = 16, ef_construction = 64)
WHERE canonical
