-- Which of a question's lexemes stand in each of some texts.
-- in: config, words (text array), extras (tsvector texts, same order), lexemes (text array)
-- out: position (from 1), found (lexemes)
SELECT t.position, array_agg(u.lexeme ORDER BY u.lexeme) AS found
FROM unnest(:'words'::text[], :'extras'::text[]) WITH ORDINALITY AS t(words, extras, position),
     LATERAL unnest(to_tsvector(:'config'::regconfig, t.words) || t.extras::tsvector) AS u
WHERE u.lexeme = ANY (:'lexemes'::text[])
GROUP BY t.position
ORDER BY t.position
