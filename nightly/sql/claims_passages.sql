-- Passages of a source in order, so many at a time; none of a retired one.
-- in: source, after (chunk_index of the last one seen, -1 at first), limit
-- out: lead is how many characters are put before the passage, as headers of a table; what overlaps with the passage
--      before shows in char_start and char_end
-- uses: chunks_source_chunk_index_key
SELECT c.id, c.chunk_index, c.char_start, c.char_end, c.text, c.heading_path, c.label, f.title,
       coalesce((SELECT max((m ->> 2)::integer) FROM jsonb_array_elements(c.marks) AS m WHERE m ->> 0 = 'repeated'), 0) AS lead
FROM chunks c JOIN files f USING (source)
WHERE source = :'source'::text AND chunk_index > :'after'::integer AND NOT c.retired
ORDER BY chunk_index
LIMIT :'limit'::integer
