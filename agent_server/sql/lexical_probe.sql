-- First phase of the exact lexical ranking: the score of the n-th best passage among those a cheap query finds.
--
-- in:  tsquery, bm25 (query vector), depth, excluded (paragraph hashes)
--      of a filter, each only when it is in use (filters.py): filtered, of_files (flags), sources, media_types (regular
--      expressions), min_authority, since, until, fields (jsonpath), heading (folded), phrase, exclude
-- out: score; no row when fewer are found. Copies that stand for a passage which the filter leaves out are not counted:
--      more passages only raise the n-th best score, so the bound holds without them.
-- uses: chunks_tsv
WITH
-- The lines down to the end of "searched" are the same in hybrid.sql and filter_count.sql; a test compares them.
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
)
SELECT -(bm25 <#> :'bm25'::sparsevec) AS score
FROM searched
WHERE canonical AND tsv @@ :'tsquery'::tsquery AND NOT paragraph_hashes && :'excluded'::bigint[]
ORDER BY bm25 <#> :'bm25'::sparsevec
LIMIT 1 OFFSET :'depth'::integer - 1
