-- Give passages their new vectors. A row that somebody else is changing is left for the next round: whoever waits for
-- no row cannot be part of a deadlock.
-- in: ids (bigint array), embeddings (halfvec array, same order). uses: chunks_pkey
WITH free AS MATERIALIZED (
    SELECT id FROM chunks
    WHERE id = ANY (:'ids'::bigint[]) AND embedding_next IS NULL
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE chunks c SET embedding_next = v.embedding
FROM free JOIN unnest(:'ids'::bigint[], :'embeddings'::halfvec[]) AS v(id, embedding) USING (id)
WHERE c.id = free.id
