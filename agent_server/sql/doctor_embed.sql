-- Give passages their vectors. in: ids (bigint array), embeddings (halfvec array, NULL for none; same order)
UPDATE chunks c SET embedding = v.embedding
FROM unnest(:'ids'::bigint[], :'embeddings'::halfvec[]) AS v(id, embedding)
WHERE c.id = v.id
