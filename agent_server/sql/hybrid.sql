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
--      entries      those of them that have an entry of their own, '' when none has: its passage comes before those
--                   that mention the code, which count mention_weight
--      others       the question's other words with their weights, a JSON object by quoted lexeme: where a passage that
--                   mentions the code holds more of them than the entry, by over others_margin, it comes first
--      excluded     paragraph hashes of near copies found already: their passages are passed over
--      dense_before, lexical_before   how many candidates earlier rounds brought: ranks go on behind them
--      exact        flag: compare vectors one by one, as few passages are left or the index brought too few
--      of a filter, each only when it is in use (filters.py): filtered, of_files (flags), sources, media_types (regular
--      expressions), min_authority, since, until, fields (jsonpath), heading (folded), phrase, exclude
-- out: best first, with what weigh.py needs to fold near copies and explain.py to say where a score comes from: its parts
--      (by_dense + by_lexical + by_code = fused) and the bonus, which score may hold less of than there is
-- uses: chunks_embedding (HNSW), chunks_tsv (GIN), chunks_pkey, chunks_others
WITH
-- The lines down to the end of "searched" are the same in lexical_probe.sql and filter_count.sql; a test compares them.
\if :{?of_files}
matched AS MATERIALIZED (
    SELECT source FROM files
    WHERE true
\if :{?sources}
      AND source ~ :'sources'::text
\endif
\if :{?min_authority}
      AND authority >= :'min_authority'::real
\endif
\if :{?media_types}
      AND media_type ~ :'media_types'::text
\endif
\if :{?since}
      AND dated >= :'since'::date
\endif
\if :{?until}
      AND dated <= :'until'::date
\endif
\if :{?fields}
      AND metadata @@ :'fields'::jsonpath
\endif
),
\endif
searched AS NOT MATERIALIZED (
    SELECT * FROM chunks
    WHERE true
\if :{?of_files}
\if :{?exact}
      AND source IN (SELECT source FROM matched)
\else
      -- Tested row by row: as a join it would take the order of the dense index away.
      AND (source IN (SELECT source FROM matched)) IS TRUE
\endif
\endif
\if :{?heading}
      AND position(:'heading'::text IN lower(regexp_replace(normalize(array_to_string(heading_path, ' > '), NFKD),
                                                            '[\u0300-\u036f]', '', 'g'))) > 0
\endif
\if :{?phrase}
      AND tsv @@ :'phrase'::tsquery
\endif
\if :{?exclude}
      AND NOT tsv @@ :'exclude'::tsquery
\endif
),
\if :{?filtered}
-- Live copies that fit where the passage that stands for them does not: the best of each takes its place.
other_copy AS MATERIALIZED (
    SELECT id FROM (
        SELECT DISTINCT ON (passage_hash) id, canonical
        FROM searched
        WHERE NOT retired AND passage_hash IN (SELECT passage_hash FROM chunks WHERE NOT canonical AND NOT retired)
        ORDER BY passage_hash, canonical DESC, authority DESC, source, chunk_index) AS best_copy
    WHERE NOT canonical
),
\endif
\if :{?exact}
-- Materialised: an ORDER BY over it cannot turn to the dense index.
measured_exactly AS MATERIALIZED (
    SELECT id, chunk_id, embedding <=> nullif(:'vector'::text, '')::halfvec AS distance
    FROM searched
    WHERE canonical AND nullif(:'vector'::text, '') IS NOT NULL AND embedding IS NOT NULL
      AND NOT paragraph_hashes && :'excluded'::bigint[]
),
\endif
-- Only this shape is served by the index: bare distance, LIMIT, the vector a parameter. NULL would rank
-- arbitrary rows.
dense AS MATERIALIZED (
    SELECT id, :'dense_before'::integer + row_number() OVER (ORDER BY distance, chunk_id) AS rank
    FROM (
\if :{?filtered}
        SELECT * FROM (
        SELECT id, chunk_id, embedding <=> nullif(:'vector'::text, '')::halfvec AS distance
        FROM other_copy JOIN chunks USING (id)
        WHERE nullif(:'vector'::text, '') IS NOT NULL AND embedding IS NOT NULL
          AND NOT paragraph_hashes && :'excluded'::bigint[]
        UNION ALL
\endif
        (
\if :{?exact}
        SELECT id, chunk_id, distance FROM measured_exactly
        ORDER BY distance, chunk_id
\else
        SELECT id, chunk_id, embedding <=> nullif(:'vector'::text, '')::halfvec AS distance
        FROM searched
        WHERE canonical AND nullif(:'vector'::text, '') IS NOT NULL AND embedding IS NOT NULL
          AND NOT paragraph_hashes && :'excluded'::bigint[]
        ORDER BY embedding <=> nullif(:'vector'::text, '')::halfvec
\endif
        LIMIT :'candidates'::integer)
\if :{?filtered}
        ) AS found ORDER BY distance, chunk_id LIMIT :'candidates'::integer
\endif
    ) AS nearest
),
lexical AS MATERIALIZED (
    SELECT id, :'lexical_before'::integer + row_number() OVER (ORDER BY cost, chunk_id) AS rank,
           CASE WHEN coded THEN row_number() OVER (PARTITION BY coded ORDER BY code_part DESC, cost, chunk_id) END AS code_rank,
           code_part
    FROM (
        SELECT *,
               CASE WHEN max(said) OVER () > max(said) FILTER (WHERE entry) OVER () + :'others_margin'::double precision
                    THEN CASE WHEN said = max(said) OVER () THEN 1
                              WHEN entry THEN (1 + :'mention_weight'::double precision) / 2
                              ELSE :'mention_weight'::double precision END
                    WHEN entry THEN 1
                    ELSE :'mention_weight'::double precision END AS code_part
        FROM (SELECT id, chunk_id, tsv @@ nullif(:'codes'::text, '')::tsquery AS coded,
                     coalesce(tsv @@ nullif(:'entries'::text, '')::tsquery, true) AS entry,
                     CASE WHEN tsv @@ nullif(:'codes'::text, '')::tsquery
                          THEN (SELECT coalesce(sum(weight::double precision), 0)
                                FROM jsonb_each_text(:'others'::jsonb) AS word(lexeme, weight)
                                WHERE tsv @@ lexeme::tsquery) END AS said,
                     CASE :'ranker'::text WHEN 'bm25' THEN bm25 <#> :'bm25'::sparsevec
                                          ELSE -ts_rank_cd(tsv, nullif(:'tsquery'::text, '')::tsquery) END AS cost
              FROM (SELECT id, chunk_id, tsv, bm25, paragraph_hashes FROM searched WHERE canonical
\if :{?filtered}
                    UNION ALL
                    SELECT id, chunk_id, tsv, bm25, paragraph_hashes FROM other_copy JOIN chunks USING (id)
\endif
                   ) AS one_of_each
              WHERE tsv @@ nullif(:'tsquery'::text, '')::tsquery
                AND NOT paragraph_hashes && :'excluded'::bigint[]
              ORDER BY cost, chunk_id
              LIMIT :'candidates'::integer) AS best) AS compared
),
candidate AS (
    SELECT id, min(dense_rank) AS dense_rank, min(lexical_rank) AS lexical_rank, min(code_rank) AS code_rank,
           min(code_part) AS code_part
    FROM (SELECT id, rank AS dense_rank, NULL::bigint AS lexical_rank, NULL::bigint AS code_rank,
                 NULL::double precision AS code_part
          FROM dense
          UNION ALL
          SELECT id, NULL, rank, code_rank, code_part FROM lexical) AS arms
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
    SELECT *, by_dense + by_lexical + by_code AS fused,
           least(dense_rank, lexical_rank) <= 10 AS near_top,
           coalesce(greatest(dense_rank, lexical_rank) <= 3 AND dense_rank + lexical_rank IS NOT NULL, false) AS agreed
    FROM (
        SELECT m.*,
               CASE :'fusion'::text
                   WHEN 'score' THEN
                       CASE WHEN :'tsquery'::text = '' THEN 1 ELSE :'fusion_weight'::double precision END
                           * coalesce((dense_score - min(dense_score) OVER ())
                                      / nullif(max(dense_score) OVER () - min(dense_score) OVER (), 0),
                                      CASE WHEN dense_score IS NULL THEN 0 ELSE 1 END)
                   ELSE coalesce(1.0 / (:'rrf_k'::double precision + dense_rank), 0) / greatest_sum
               END AS by_dense,
               CASE :'fusion'::text
                   WHEN 'score' THEN
                       CASE WHEN nullif(:'vector'::text, '') IS NULL THEN 1
                            ELSE 1 - :'fusion_weight'::double precision END
                           * coalesce(lexical_score / nullif(max(lexical_score) OVER (), 0), 0)
                   ELSE coalesce(1.0 / (:'rrf_k'::double precision + lexical_rank), 0) / greatest_sum
               END AS by_lexical,
               CASE :'fusion'::text
                   WHEN 'score' THEN 0
                   ELSE :'code_weight'::double precision
                       * coalesce(code_part / (:'rrf_k'::double precision + code_rank), 0) / greatest_sum
               END AS by_code
        FROM measured m,
             (SELECT ((nullif(:'vector'::text, '') IS NOT NULL)::integer + (:'tsquery'::text <> '')::integer
                      + CASE WHEN :'codes'::text = '' THEN 0 ELSE :'code_weight'::double precision END)
                     / (:'rrf_k'::double precision + 1) AS greatest_sum) AS g) AS parts
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
       k.code_rank, k.code_part, k.by_dense, k.by_lexical, k.by_code, k.fused, k.bonus,
       (SELECT count(*) FROM dense) AS dense_found, (SELECT count(*) FROM lexical) AS lexical_found,
       c.passage_hash, c.paragraph_hashes, c.paragraph_spans, c.text, c.context
FROM kept k JOIN chunks c USING (id)
WHERE k.place <= :'keep'::integer
ORDER BY k.score DESC, k.chunk_id
