-- Passages of a source in order, so many at a time.
-- in: source, after (chunk_index of the last one seen, -1 at first), limit. uses: chunks_source_chunk_index_key
SELECT id, chunk_index, text, heading_path, label, char_start, char_end,
       coalesce((SELECT max((m ->> 2)::integer) FROM jsonb_array_elements(marks) AS m WHERE m ->> 0 = 'repeated'), 0) AS lead
FROM chunks
WHERE source = :'source'::text AND chunk_index > :'after'::integer
ORDER BY chunk_index
LIMIT :'limit'::integer
