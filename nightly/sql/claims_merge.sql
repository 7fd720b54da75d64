-- Bring the document frequencies of claims up to date with what was appended to them.
WITH merged AS (DELETE FROM claim_lexeme_deltas RETURNING tsv, d)
INSERT INTO claim_lexemes
SELECT lexeme, sum(d)
FROM (SELECT unnest(tsvector_to_array(tsv)) COLLATE "C" AS lexeme, d FROM merged
      UNION ALL SELECT '', d FROM merged) AS counted
GROUP BY lexeme HAVING sum(d) <> 0 ORDER BY lexeme
ON CONFLICT (lexeme) DO UPDATE SET ndoc = claim_lexemes.ndoc + excluded.ndoc
