-- Bring document frequencies up to date with what the files' transactions appended.
WITH merged AS (DELETE FROM lexeme_deltas RETURNING tsv, d)
INSERT INTO lexemes
SELECT lexeme, sum(d)
FROM (SELECT unnest(tsvector_to_array(tsv)) COLLATE "C" AS lexeme, d FROM merged
      UNION ALL SELECT '', d FROM merged) AS counted
GROUP BY lexeme HAVING sum(d) <> 0 ORDER BY lexeme
ON CONFLICT (lexeme) DO UPDATE SET ndoc = lexemes.ndoc + excluded.ndoc
