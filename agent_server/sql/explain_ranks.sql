-- Where some passages stand among all that a search could bring, in each arm, counted without index or limit.
--
-- in:  ids (bigint array), exact (flag, always set)
--      vector       the question's vector, '' when the dense arm does not run
--      tsquery      any of the question's terms, '' when the lexical arm does not run
--      bm25, ranker as in hybrid.sql
--      of a filter, each only when it is in use (filters.py): filtered, of_files (flags), sources, media_types (regular
--      expressions), min_authority, since, until, fields (jsonpath), heading (folded), phrase, exclude
-- out: id, and the passage that stands for it under the filter (its own id, that of a copy, or NULL) with its ranks and
--      scores: dense_rank, dense_score (NULL: no vector), lexical_rank, lexical_score (NULL: holds none of the terms)
-- uses: chunks_pkey
WITH
-- The lines down to the end of "other_copy" are the same in hybrid.sql; a test compares them.
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
one_of_each AS MATERIALIZED (
    SELECT id, chunk_id, passage_hash, embedding <=> nullif(:'vector'::text, '')::halfvec AS distance,
           CASE WHEN tsv @@ nullif(:'tsquery'::text, '')::tsquery THEN
               CASE :'ranker'::text WHEN 'bm25' THEN bm25 <#> :'bm25'::sparsevec
                                    ELSE -ts_rank_cd(tsv, nullif(:'tsquery'::text, '')::tsquery) END
           END AS cost
    FROM (SELECT id, chunk_id, passage_hash, embedding, tsv, bm25 FROM searched WHERE canonical
\if :{?filtered}
          UNION ALL
          SELECT id, chunk_id, passage_hash, embedding, tsv, bm25 FROM other_copy JOIN chunks USING (id)
\endif
         ) AS found
),
ranked AS (
    SELECT *, row_number() OVER (ORDER BY distance, chunk_id) AS dense_rank,
           row_number() OVER (ORDER BY cost, chunk_id) AS lexical_rank
    FROM one_of_each
)
SELECT c.id, r.id AS stands_id, r.chunk_id AS stands_chunk_id,
       CASE WHEN r.distance IS NOT NULL THEN r.dense_rank END AS dense_rank, 1 - r.distance AS dense_score,
       CASE WHEN r.cost IS NOT NULL THEN r.lexical_rank END AS lexical_rank, -r.cost AS lexical_score
FROM chunks c LEFT JOIN ranked r USING (passage_hash)
WHERE c.id = ANY (:'ids'::bigint[])
