-- Bring document frequencies up to date with what the files' transactions appended.
WITH merged AS (DELETE FROM lexeme_deltas RETURNING lexeme, d)
INSERT INTO lexemes
SELECT lexeme, sum(d) FROM merged GROUP BY lexeme HAVING sum(d) <> 0 ORDER BY lexeme
ON CONFLICT (lexeme) DO UPDATE SET ndoc = lexemes.ndoc + excluded.ndoc
