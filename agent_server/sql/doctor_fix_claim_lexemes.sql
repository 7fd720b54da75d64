-- Count the document frequencies of claims anew over the verified ones.
WITH counted AS (
    SELECT t.lexeme COLLATE "C" AS lexeme, count(*) AS ndoc
    FROM claims c, unnest(c.tsv) AS t WHERE c.status = 'verified' GROUP BY 1
    UNION ALL
    SELECT '', count(*) FROM claims WHERE status = 'verified' HAVING count(*) > 0
),
settled AS (DELETE FROM claim_lexeme_deltas),
forgotten AS (
    DELETE FROM claim_lexemes l WHERE NOT EXISTS (SELECT FROM counted c WHERE c.lexeme = l.lexeme)
)
INSERT INTO claim_lexemes
SELECT lexeme, ndoc FROM counted ORDER BY lexeme
ON CONFLICT (lexeme) DO UPDATE SET ndoc = excluded.ndoc WHERE claim_lexemes.ndoc <> excluded.ndoc
