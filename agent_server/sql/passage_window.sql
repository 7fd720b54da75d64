-- A passage with its neighbours, in reading order.
-- in: chunk_id, before, after (how many). uses: chunks_chunk_id, chunks_source_chunk_index_key
SELECT c.chunk_id, c.source, f.title, c.chunk_index, c.page_first, c.heading_path, c.text, c.context, c.authority, c.retired
FROM chunks here
JOIN chunks c ON c.source = here.source
    AND c.chunk_index BETWEEN here.chunk_index - :'before'::integer AND here.chunk_index + :'after'::integer
JOIN files f ON f.source = c.source
WHERE here.chunk_id = :'chunk_id'::text
ORDER BY c.chunk_index
