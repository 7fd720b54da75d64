-- The next passages that have no vector, or one that nothing is near, in order of id; not those of partial files: the
-- model has refused them, and the ledger says so.
-- in: after (id), limit. uses: chunks_pkey
SELECT c.id, c.source, c.chunk_index, c.context, c.text
FROM chunks c JOIN files f USING (source)
WHERE c.id > :'after'::bigint AND f.status <> 'partial' AND (c.embedding IS NULL OR l2_norm(c.embedding) = 0)
ORDER BY c.id
LIMIT :'limit'::integer
