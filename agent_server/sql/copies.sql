-- The other copies of some passages, best authority first.
-- in: ids (bigint array). uses: chunks_pkey, chunks_copies
SELECT p.id, c.chunk_id
FROM chunks p JOIN chunks c ON c.passage_hash = p.passage_hash AND c.id <> p.id AND NOT c.retired
WHERE p.id = ANY (:'ids'::bigint[])
ORDER BY p.id, c.authority DESC, c.source, c.chunk_index
