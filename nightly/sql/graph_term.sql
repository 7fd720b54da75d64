-- Where a term is defined, the whole definitions first. in: folded, partial (forms that define in part), limit
-- uses: terms_folded, chunks_pkey
SELECT c.id, c.chunk_id, c.context, c.heading_path, c.text, t.term, t.form, t.scope,
       substr(c.text, t.from_start + 1, t.from_end - t.from_start) AS words
FROM terms t JOIN chunks c ON c.id = t.chunk
WHERE t.folded = :'folded'::text
ORDER BY t.form = ANY (:'partial'::text[]), c.authority DESC, c.source, c.chunk_index, t.from_start
LIMIT :'limit'::integer
