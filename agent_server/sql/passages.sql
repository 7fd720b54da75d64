-- Passages to show, by id, in no order; with what a near copy of higher authority needs to take a hit's place.
-- in: ids (bigint array), vector ('' without), bm25. uses: chunks_pkey, files_pkey
SELECT c.id, c.chunk_id, c.source, f.title, c.chunk_index, c.page_first, c.page_last, c.heading_path, c.text, c.context,
       c.authority, 1 - (c.embedding <=> nullif(:'vector'::text, '')::halfvec) AS dense_score,
       -(c.bm25 <#> :'bm25'::sparsevec) AS lexical_score
FROM chunks c JOIN files f USING (source)
WHERE c.id = ANY (:'ids'::bigint[])
