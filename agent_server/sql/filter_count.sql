-- How many passages a filter leaves, counted up to one more than the limit below which they are searched exactly.
--
-- in:  share, at_least   the limit: a share of all passages, or so many
--      exact (flag, always set), copies (flag: count every live copy, not only passages that stand for their copies)
--      of a filter, each only when it is in use (filters.py): filtered, of_files (flags), sources, media_types (regular
--      expressions), min_authority, since, until, fields (jsonpath), heading (folded), phrase, exclude
-- out: left, limit
-- uses: chunks_tsv (phrase), chunks_source_chunk_index_key
WITH
-- The lines down to the end of "searched" are the same in hybrid.sql and lexical_probe.sql; a test compares them.
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
bound AS (
    SELECT greatest(:'at_least'::bigint, (:'share'::double precision
                        * coalesce((SELECT ndoc FROM lexemes WHERE lexeme = ''), 0))::bigint) AS "limit"
)
SELECT (SELECT count(*) FROM (SELECT FROM searched
\if :{?copies}
                              WHERE NOT retired
\else
                              WHERE canonical
\endif
                              LIMIT (SELECT "limit" + 1 FROM bound)) AS counted) AS "left",
       (SELECT "limit" FROM bound) AS "limit"
