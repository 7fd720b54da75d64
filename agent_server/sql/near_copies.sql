-- Passages that hold one of some paragraphs, for each paragraph the best authority first, and how long the stretch
-- of the paragraph is that they hold.
-- in: hashes (bigint array), limit (per paragraph). uses: chunks_paragraphs
SELECT h.hash, c.id, c.chunk_id, c.authority, c.canonical, c.span
FROM unnest(:'hashes'::bigint[]) AS h(hash),
     LATERAL (
         SELECT id, chunk_id, authority, canonical, source, chunk_index,
                paragraph_spans[2 * array_position(paragraph_hashes, h.hash)]
                    - paragraph_spans[2 * array_position(paragraph_hashes, h.hash) - 1] AS span
         FROM chunks
         WHERE paragraph_hashes && ARRAY[h.hash] AND NOT retired
         ORDER BY authority DESC, source, chunk_index
         LIMIT :'limit'::integer
     ) AS c
ORDER BY h.hash, c.authority DESC, c.source, c.chunk_index
