-- The next passages without a new vector, in order of id.
-- in: after (id), refused (ids that the new model gives no vector), limit. uses: chunks_pkey
SELECT id, context, text FROM chunks
WHERE id > :'after'::bigint AND embedding_next IS NULL AND id <> ALL (:'refused'::bigint[])
ORDER BY id
LIMIT :'limit'::integer
