-- The question's terms in some passages, one by one: how often each stands there, and its part of the BM25 score.
-- in: ids (bigint array), lexemes (text array), vectors (for each lexeme a query vector of it alone, text array)
-- out: id, lexeme, tf, score (the parts of a passage add up to its stored inner product with the whole question)
-- uses: chunks_pkey
SELECT c.id, t.lexeme, coalesce(cardinality(held.positions), 0) AS tf, -(c.bm25 <#> t.vector::sparsevec) AS score
FROM chunks c
CROSS JOIN unnest(:'lexemes'::text[], :'vectors'::text[]) WITH ORDINALITY AS t(lexeme, vector, n)
LEFT JOIN LATERAL (SELECT positions FROM unnest(c.tsv) AS l WHERE l.lexeme = t.lexeme) AS held ON true
WHERE c.id = ANY (:'ids'::bigint[])
ORDER BY c.id, t.n
