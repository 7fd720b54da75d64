-- The terms of a question as the verified claims know them, rarest first, and how many such claims there are.
-- in: config, words, extras (a tsvector's text form). out: lexeme, qtf, ndoc (NULL: never seen), dim, total
-- uses: claim_lexemes_pkey
SELECT t.lexeme, cardinality(t.positions) AS qtf, l.ndoc, lexdim(t.lexeme) AS dim,
       coalesce((SELECT ndoc FROM claim_lexemes WHERE lexeme = ''), 0) AS total
FROM unnest(to_tsvector(:'config'::regconfig, :'words'::text) || :'extras'::tsvector) AS t
LEFT JOIN claim_lexemes l ON l.lexeme = t.lexeme AND l.ndoc > 0
ORDER BY l.ndoc NULLS FIRST, t.lexeme
