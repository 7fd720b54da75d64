-- The lexemes of some phrases with their places, as a passage with the same words would have them.
-- in: config, words (text array). out: phrase (from 1), position, lexeme
SELECT p.phrase::integer AS phrase, t.lexeme, position
FROM unnest(:'words'::text[]) WITH ORDINALITY AS p(words, phrase),
     unnest(to_tsvector(:'config'::regconfig, p.words)) AS t,
     unnest(t.positions) AS position
ORDER BY phrase, position, lexeme
