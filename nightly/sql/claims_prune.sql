-- Forget lexemes that no verified claim holds any more.
DELETE FROM claim_lexemes WHERE ndoc <= 0
