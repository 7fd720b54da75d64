-- All passages of a source in order, with what its file says of it.
-- in: source, limit. out: id, chunk_index, text, char_start, char_end, marks, title, media_type
-- uses: chunks_source_chunk_index_key
SELECT c.id, c.text, c.char_start, c.char_end, c.marks, f.title, f.media_type
FROM chunks c JOIN files f USING (source)
WHERE c.source = :'source'::text
ORDER BY c.chunk_index
LIMIT :'limit'::integer
