-- Bring the document frequencies of claims up to date with what was appended to them.
WITH merged AS (DELETE FROM claim_lexeme_deltas RETURNING lexeme, d)
INSERT INTO claim_lexemes
SELECT lexeme, sum(d) FROM merged GROUP BY lexeme HAVING sum(d) <> 0 ORDER BY lexeme
ON CONFLICT (lexeme) DO UPDATE SET ndoc = claim_lexemes.ndoc + excluded.ndoc
