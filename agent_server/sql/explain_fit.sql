-- Which of some passages a filter leaves.
--
-- in:  ids (bigint array), exact (flag, always set)
--      of a filter, each only when it is in use (filters.py): filtered, of_files (flags), sources, media_types (regular
--      expressions), min_authority, since, until, fields (jsonpath), heading (folded), phrase, exclude
-- out: id
-- uses: chunks_pkey
WITH
-- The lines down to the end of "searched" are the same in hybrid.sql; a test compares them.
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
SELECT id FROM searched WHERE id = ANY (:'ids'::bigint[])
