-- Count document frequencies anew over the searched passages. Run it under lexemes_lock.sql. One snapshot sees a
-- file's passages and its pending changes together or not at all, so that ingestion may go on meanwhile.
WITH counted AS (
    SELECT t.lexeme COLLATE "C" AS lexeme, count(*) AS ndoc
    FROM chunks c, unnest(c.tsv) AS t WHERE c.canonical GROUP BY 1
    UNION ALL
    SELECT '', count(*) FROM chunks WHERE canonical
),
settled AS (DELETE FROM lexeme_deltas),
forgotten AS (
    DELETE FROM lexemes l WHERE NOT EXISTS (SELECT FROM counted c WHERE c.lexeme = l.lexeme)
)
INSERT INTO lexemes
SELECT lexeme, ndoc FROM counted ORDER BY lexeme
ON CONFLICT (lexeme) DO UPDATE SET ndoc = excluded.ndoc WHERE lexemes.ndoc <> excluded.ndoc
