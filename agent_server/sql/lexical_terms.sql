-- The terms of a question as this collection knows them, rarest first, and the number of passages searched (N).
-- in: config, words, extras (a tsvector's text form). out: lexeme, qtf, ndoc (NULL: never seen), dim, total
-- uses: lexemes_pkey
SELECT t.lexeme, cardinality(t.positions) AS qtf, l.ndoc, lexdim(t.lexeme) AS dim,
       coalesce((SELECT ndoc FROM lexemes WHERE lexeme = ''), 0) AS total
FROM unnest(to_tsvector(:'config'::regconfig, :'words'::text) || :'extras'::tsvector) AS t
LEFT JOIN lexemes l ON l.lexeme = t.lexeme
ORDER BY l.ndoc NULLS FIRST, t.lexeme
