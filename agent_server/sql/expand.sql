-- Passages that edges lead to: what the first hits of a search cite, what defines a term that hit and question use, and
-- what defines the term that the question asks for. Bounded whatever the graph: so many edges are read of each passage.
--
-- in:  hits          the hits that are shown, best first (bigint array); followed: edges of so many of them
--      cites (flag)  with per_hit: edges read of a hit;  onward (flag and value): edges read of a passage that was
--                    reached, for a second hop
--      used (flag and value)   keys of terms that the question may use (text array)
--      asked (flag and value)  keys of terms that it may ask for, likeliest first, with per_term: definitions looked at
--                    of a term
--      lexemes, weights  (with cites or asked) the question's words, to weigh citing sentences and definitions
--      config        (with asked) of the collection
--      hub           a passage that more edges of a relation lead to is passed over
--      vector, bm25  the question, as in hybrid.sql
--      of a filter, each only when it is in use, as in hybrid.sql
-- out: each passage once: how it was reached (hop 0: the question asks for it, 1 and 2: cited, 3: a term in use), from
--      which passage and at which hit's place, how near the question is; own_weight: the weight of the question's words
--      that a definition has, those of its first sentence twice as much as the others, or that the sentence has which
--      cites the passage
-- uses: links_from, links_to, terms_folded, chunks_pkey
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
),
hit AS MATERIALIZED (
    SELECT id, place FROM unnest(:'hits'::bigint[]) WITH ORDINALITY AS h(id, place)
    WHERE place <= :'followed'::integer
),
\if :{?cites}
cited AS MATERIALIZED (
    SELECT h.id AS from_id, h.place, l.*
    FROM hit h CROSS JOIN LATERAL (
        SELECT to_chunk, anchor, from_start, from_end, said FROM links
        WHERE from_chunk = h.id AND relation = 'cites'
        ORDER BY from_start, from_end, to_chunk, to_start
        LIMIT :'per_hit'::integer) AS l
),
\endif
reached AS (
    SELECT DISTINCT ON (to_chunk) *
    FROM (SELECT NULL::bigint AS to_chunk, NULL AS relation, NULL AS anchor, NULL::bigint AS from_id,
                 NULL::bigint AS place, NULL::integer AS hop, NULL AS form, NULL::integer AS from_start,
                 NULL::integer AS from_end, NULL::text[] AS said
          WHERE false
\if :{?asked}
          UNION ALL
          SELECT chunk, 'defines', term, NULL, NULL, 0, form, from_start, from_end, NULL
          FROM (SELECT t.*, k.position, min(k.position) OVER () AS likeliest
                FROM unnest(:'asked'::text[]) WITH ORDINALITY AS k(key, position) CROSS JOIN LATERAL (
                    SELECT chunk, term, form, from_start, from_end FROM terms
                    WHERE folded = k.key
                    ORDER BY id
                    LIMIT :'per_term'::integer) AS t) AS asked
          WHERE position = likeliest
\endif
\if :{?cites}
          UNION ALL
          SELECT to_chunk, 'cites', anchor, from_id, place, 1, '', from_start, from_end, said FROM cited
\if :{?onward}
          UNION ALL
          SELECT l.to_chunk, 'cites', l.anchor, f.to_chunk, f.place, 2, '', l.from_start, l.from_end, l.said
          FROM (SELECT DISTINCT ON (to_chunk) to_chunk, place FROM cited ORDER BY to_chunk, place
                LIMIT :'per_hit'::integer) AS f
          CROSS JOIN LATERAL (
              SELECT to_chunk, anchor, from_start, from_end, said FROM links
              WHERE from_chunk = f.to_chunk AND relation = 'cites'
              ORDER BY from_start, from_end, to_chunk, to_start
              LIMIT :'onward'::integer) AS l
\endif
\endif
\if :{?used}
          UNION ALL
          SELECT l.to_chunk, 'defines', l.anchor, h.id, h.place, 3, '', NULL, NULL, NULL
          FROM hit h CROSS JOIN LATERAL (
              SELECT to_chunk, anchor FROM links
              WHERE from_chunk = h.id AND relation = 'defines' AND target_label = ANY (:'used'::text[])
              ORDER BY from_start, from_end, to_chunk, to_start
              LIMIT :'per_hit'::integer) AS l
\endif
         ) AS edge
    ORDER BY to_chunk, hop, place, from_start
)
SELECT c.id, c.chunk_id, c.passage_hash, c.authority, r.relation, r.anchor, r.from_id, r.place, r.hop, r.form,
       1 - (c.embedding <=> nullif(:'vector'::text, '')::halfvec) AS dense_score,
       -(c.bm25 <#> :'bm25'::sparsevec) AS lexical_score,
       CASE WHEN r.hop = 3 THEN NULL::double precision
\if :{?asked}
           WHEN r.hop = 0 THEN (
               SELECT coalesce(sum(q.weight * ((q.lexeme = ANY (own.all_words))::integer
                                               + (q.lexeme = ANY (own.first_words))::integer) / 2), 0)
               FROM unnest(:'lexemes'::text[], :'weights'::double precision[]) AS q(lexeme, weight),
                    (SELECT tsvector_to_array(to_tsvector(:'config'::regconfig, span)) AS all_words,
                            tsvector_to_array(to_tsvector(:'config'::regconfig,
                                                          substring(span FROM '^.*?[.;](?=\s|$)'))) AS first_words
                     FROM substr(c.text, r.from_start + 1, r.from_end - r.from_start) AS span) AS own)
\endif
\if :{?cites}
           WHEN r.relation = 'cites' THEN (
               SELECT coalesce(sum(q.weight), 0)
               FROM unnest(:'lexemes'::text[], :'weights'::double precision[]) AS q(lexeme, weight)
               WHERE q.lexeme = ANY (r.said))
\endif
       END
       AS own_weight
FROM reached r JOIN searched c ON c.id = r.to_chunk
WHERE NOT c.retired
  AND (r.hop = 0 OR NOT EXISTS (SELECT FROM links l WHERE l.to_chunk = c.id AND l.relation = r.relation
                                OFFSET :'hub'::integer LIMIT 1))
ORDER BY r.hop, r.place, c.chunk_id
