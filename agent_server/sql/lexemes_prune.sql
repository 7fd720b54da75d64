-- Forget lexemes that stand in no passage any more.
DELETE FROM lexemes WHERE ndoc = 0 AND lexeme <> ''
