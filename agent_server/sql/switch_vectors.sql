-- The new vectors and their index take the place of the old ones, which are gone. Catalogue changes only.
ALTER TABLE chunks DROP COLUMN embedding;
ALTER TABLE chunks RENAME COLUMN embedding_next TO embedding;
COMMENT ON COLUMN chunks.embedding IS NULL;
ALTER INDEX IF EXISTS chunks_embedding_next RENAME TO chunks_embedding
