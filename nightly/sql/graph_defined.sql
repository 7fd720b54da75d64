-- Terms that a passage defines, in their order. in: chunk (id), limit. uses: terms_chunk
SELECT t.term, t.folded, t.form, t.scope, substr(c.text, t.from_start + 1, t.from_end - t.from_start) AS words
FROM terms t JOIN chunks c ON c.id = t.chunk
WHERE t.chunk = :'chunk'::bigint
ORDER BY t.from_start, t.id
LIMIT :'limit'::integer
