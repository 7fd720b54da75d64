-- Compare the stored document frequencies, pending changes included, with a recount over the searched passages.
-- out: wrong (lexemes whose count differs), example (one of them), stated and counted (passages, N), pending (changes)
WITH counted AS (
    SELECT t.lexeme COLLATE "C" AS lexeme, count(*) AS ndoc
    FROM chunks c, unnest(c.tsv) AS t WHERE c.canonical GROUP BY 1
    UNION ALL
    SELECT '', count(*) FROM chunks WHERE canonical
),
stated AS (
    SELECT lexeme, sum(n) AS ndoc
    FROM (SELECT lexeme, ndoc AS n FROM lexemes
          UNION ALL SELECT unnest(tsvector_to_array(tsv)), d FROM lexeme_deltas
          UNION ALL SELECT '', d FROM lexeme_deltas) AS both_tables
    GROUP BY lexeme
)
SELECT count(*) FILTER (WHERE coalesce(s.ndoc, 0) <> coalesce(c.ndoc, 0)) AS wrong,
       min(lexeme) FILTER (WHERE coalesce(s.ndoc, 0) <> coalesce(c.ndoc, 0) AND lexeme <> '') AS example,
       coalesce(max(s.ndoc) FILTER (WHERE lexeme = ''), 0)::bigint AS stated,
       coalesce(max(c.ndoc) FILTER (WHERE lexeme = ''), 0) AS counted,
       (SELECT count(*) FROM lexeme_deltas) AS pending
FROM counted c FULL JOIN stated s USING (lexeme)
