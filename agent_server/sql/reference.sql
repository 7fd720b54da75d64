-- What plain Postgres does without this product, to compare with: ts_rank_cd over a query of all or any of the
-- question's words, alone or fused with the nearest vectors by reciprocal rank. No identifiers, no authority, no folding
-- of near copies.
--
-- in:  config, question
--      any         flag: any word (OR) instead of all of them (AND)
--      vector      the question's vector, '' for words alone
--      rrf_k, candidates (of each list), limit
-- out: chunk_id, text, best first
-- uses: chunks_embedding (HNSW), chunks_tsv (GIN)
WITH query AS MATERIALIZED (
\if :{?any}
    -- Lexemes never hold the blank that stands around an operator.
    SELECT replace(plainto_tsquery(:'config'::regconfig, :'question'::text)::text, ' & ', ' | ')::tsquery AS words
\else
    SELECT plainto_tsquery(:'config'::regconfig, :'question'::text) AS words
\endif
),
lexical AS MATERIALIZED (
    SELECT chunk_id, row_number() OVER (ORDER BY score DESC, chunk_id) AS rank
    FROM (SELECT chunk_id, ts_rank_cd(tsv, words) AS score
          FROM chunks, query
          WHERE canonical AND tsv @@ words
          ORDER BY score DESC, chunk_id
          LIMIT :'candidates'::integer) AS best
),
dense AS MATERIALIZED (
    SELECT chunk_id, row_number() OVER (ORDER BY distance, chunk_id) AS rank
    FROM (SELECT chunk_id, embedding <=> nullif(:'vector'::text, '')::halfvec AS distance
          FROM chunks
          WHERE canonical AND nullif(:'vector'::text, '') IS NOT NULL AND embedding IS NOT NULL
          ORDER BY embedding <=> nullif(:'vector'::text, '')::halfvec
          LIMIT :'candidates'::integer) AS nearest
),
fused AS (
    SELECT chunk_id, sum(1.0 / (:'rrf_k'::double precision + rank)) AS score
    FROM (SELECT * FROM lexical UNION ALL SELECT * FROM dense) AS lists
    GROUP BY chunk_id
)
SELECT c.chunk_id, c.text
FROM fused JOIN chunks c USING (chunk_id)
ORDER BY score DESC, chunk_id
LIMIT :'limit'::integer
