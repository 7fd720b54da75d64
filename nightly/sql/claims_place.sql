-- The live passage of a source that holds some words, the one asked for before all others.
-- in: source, chunk_id ('' for any), quote. uses: chunks_source_chunk_index_key
SELECT id, text, position(:'quote'::text IN text) - 1 AS quote_start
FROM chunks
WHERE source = :'source'::text AND NOT retired AND position(:'quote'::text IN text) > 0
ORDER BY chunk_id <> :'chunk_id'::text, chunk_index
LIMIT 1
