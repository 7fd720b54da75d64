-- Compare the stored document frequencies of claims, pending changes included, with a recount over the verified ones.
-- out: wrong (lexemes whose count differs), example (one of them), stated and counted (claims), pending: not told, as
--      every review leaves some
WITH counted AS (
    SELECT t.lexeme COLLATE "C" AS lexeme, count(*) AS ndoc
    FROM claims c, unnest(c.tsv) AS t WHERE c.status = 'verified' GROUP BY 1
    UNION ALL
    SELECT '', count(*) FROM claims WHERE status = 'verified'
),
stated AS (
    SELECT lexeme, sum(n) AS ndoc
    FROM (SELECT lexeme, ndoc AS n FROM claim_lexemes
          UNION ALL SELECT unnest(tsvector_to_array(tsv)), d FROM claim_lexeme_deltas
          UNION ALL SELECT '', d FROM claim_lexeme_deltas) AS both_tables
    GROUP BY lexeme
)
SELECT count(*) FILTER (WHERE coalesce(s.ndoc, 0) <> coalesce(c.ndoc, 0)) AS wrong,
       min(lexeme) FILTER (WHERE coalesce(s.ndoc, 0) <> coalesce(c.ndoc, 0) AND lexeme <> '') AS example,
       coalesce(max(s.ndoc) FILTER (WHERE lexeme = ''), 0)::bigint AS stated,
       coalesce(max(c.ndoc) FILTER (WHERE lexeme = ''), 0) AS counted,
       0 AS pending
FROM counted c FULL JOIN stated s USING (lexeme)
