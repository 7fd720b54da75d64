-- Passages that the new model gave no vector, in files that are indexed with another one.
-- out: source, chunk_index, id, chunks (how many the file has)
SELECT c.source, c.chunk_index, c.id, f.chunk_count AS chunks
FROM chunks c JOIN files f USING (source)
WHERE c.embedding_next IS NULL AND f.status IN ('indexed', 'partial')
ORDER BY c.source, c.chunk_index
