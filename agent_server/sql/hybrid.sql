-- Passages for a question: dense and lexical candidates, fused, with the authority bonus and both arms' anchors.
--
-- in:  vector       the question's vector, '' when the dense arm does not run
--      tsquery      candidates of the lexical arm, '' when it does not run
--      bm25         IDF weights of the question's terms
--      candidates   how many each arm brings
--      keep         how many come back
--      fusion       rrf | score;  rrf_k, fusion_weight (share of the dense arm in 'score')
--      ranker       bm25 | ts_rank_cd (the reference)
--      authority_weight, code_weight
--      codes        the question's identifiers, '' when it has none or all are common: passages that hold one get a
--                   third rank, as words and meaning alone would drown a code among its neighbours
--      excluded     paragraph hashes of near copies found already: their passages are passed over
--      dense_before, lexical_before   how many candidates earlier rounds brought: ranks go on behind them
-- out: best first, with what weigh.py needs to fold near copies
-- uses: chunks_embedding (HNSW), chunks_tsv (GIN), chunks_pkey
WITH
-- Only this shape is served by the index: bare distance, LIMIT, the vector a parameter. NULL would rank
-- arbitrary rows.
dense AS MATERIALIZED (
    SELECT id, :'dense_before'::integer + row_number() OVER (ORDER BY distance, chunk_id) AS rank
    FROM (SELECT id, chunk_id, embedding <=> nullif(:'vector'::text, '')::halfvec AS distance
          FROM chunks
          WHERE canonical AND nullif(:'vector'::text, '') IS NOT NULL AND embedding IS NOT NULL
            AND NOT paragraph_hashes && :'excluded'::bigint[]
          ORDER BY embedding <=> nullif(:'vector'::text, '')::halfvec
          LIMIT :'candidates'::integer) AS nearest
),
lexical AS MATERIALIZED (
    SELECT id, :'lexical_before'::integer + row_number() OVER (ORDER BY cost, chunk_id) AS rank,
           CASE WHEN coded THEN row_number() OVER (PARTITION BY coded ORDER BY cost, chunk_id) END AS code_rank
    FROM (SELECT id, chunk_id, tsv @@ nullif(:'codes'::text, '')::tsquery AS coded,
                 CASE :'ranker'::text WHEN 'bm25' THEN bm25 <#> :'bm25'::sparsevec
                                      ELSE -ts_rank_cd(tsv, nullif(:'tsquery'::text, '')::tsquery) END AS cost
          FROM chunks
          WHERE canonical AND tsv @@ nullif(:'tsquery'::text, '')::tsquery
            AND NOT paragraph_hashes && :'excluded'::bigint[]
          ORDER BY cost, chunk_id
          LIMIT :'candidates'::integer) AS best
),
candidate AS (
    SELECT id, min(dense_rank) AS dense_rank, min(lexical_rank) AS lexical_rank, min(code_rank) AS code_rank
    FROM (SELECT id, rank AS dense_rank, NULL::bigint AS lexical_rank, NULL::bigint AS code_rank FROM dense
          UNION ALL
          SELECT id, NULL, rank, code_rank FROM lexical) AS arms
    GROUP BY id
),
measured AS (
    SELECT k.*, c.chunk_id, c.authority,
           1 - (c.embedding <=> nullif(:'vector'::text, '')::halfvec) AS dense_score,
           CASE WHEN :'tsquery'::text <> '' THEN
               CASE :'ranker'::text WHEN 'bm25' THEN -(c.bm25 <#> :'bm25'::sparsevec)
                                    ELSE ts_rank_cd(c.tsv, nullif(:'tsquery'::text, '')::tsquery) END
           END AS lexical_score
    FROM candidate k JOIN chunks c USING (id)
),
-- rrf: sum of 1 / (k + rank) over the ranks that a question has (Cormack, Clarke and Büttcher, 2009), over its greatest
-- possible value. score: min-max cosine and BM25 over its best, weighed; both known for every candidate.
fused AS (
    SELECT *,
           CASE :'fusion'::text
               WHEN 'score' THEN
                   CASE WHEN :'tsquery'::text = '' THEN 1 ELSE :'fusion_weight'::double precision END
                       * coalesce((dense_score - min(dense_score) OVER ())
                                  / nullif(max(dense_score) OVER () - min(dense_score) OVER (), 0),
                                  CASE WHEN dense_score IS NULL THEN 0 ELSE 1 END)
                 + CASE WHEN nullif(:'vector'::text, '') IS NULL THEN 1
                        ELSE 1 - :'fusion_weight'::double precision END
                       * coalesce(lexical_score / nullif(max(lexical_score) OVER (), 0), 0)
               ELSE
                   (coalesce(1.0 / (:'rrf_k'::double precision + dense_rank), 0)
                    + coalesce(1.0 / (:'rrf_k'::double precision + lexical_rank), 0)
                    + :'code_weight'::double precision
                      * coalesce(1.0 / (:'rrf_k'::double precision + code_rank), 0))
                   / (((nullif(:'vector'::text, '') IS NOT NULL)::integer + (:'tsquery'::text <> '')::integer
                       + CASE WHEN :'codes'::text = '' THEN 0 ELSE :'code_weight'::double precision END)
                      / (:'rrf_k'::double precision + 1))
           END AS fused,
           least(dense_rank, lexical_rank) <= 10 AS near_top,
           coalesce(greatest(dense_rank, lexical_rank) <= 3 AND dense_rank + lexical_rank IS NOT NULL, false) AS agreed
    FROM measured
),
-- The bonus breaks near-ties: it never lifts a passage outside both arms' first 10 over one in both first 3.
scored AS (
    SELECT *,
           CASE WHEN near_top OR fused >= floor THEN fused + bonus
                ELSE least(fused + bonus, coalesce(floor - 1e-9, fused + bonus)) END AS score
    FROM (SELECT *, :'authority_weight'::double precision * authority AS bonus,
                 min(fused) FILTER (WHERE agreed) OVER () AS floor
          FROM fused) AS with_floor
),
-- Each arm's first hit stays in the result.
kept AS (
    SELECT *, row_number() OVER (ORDER BY coalesce(dense_rank = 1, false) OR coalesce(lexical_rank = 1, false) DESC,
                                          score DESC, chunk_id) AS place
    FROM scored
)
SELECT k.id, k.chunk_id, k.score, k.dense_rank, k.dense_score, k.lexical_rank, k.lexical_score, k.authority,
       (SELECT count(*) FROM dense) AS dense_found, (SELECT count(*) FROM lexical) AS lexical_found,
       c.passage_hash, c.paragraph_hashes, c.paragraph_spans, c.text, c.context
FROM kept k JOIN chunks c USING (id)
WHERE k.place <= :'keep'::integer
ORDER BY k.score DESC, k.chunk_id
