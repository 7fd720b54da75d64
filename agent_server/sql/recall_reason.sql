-- What a collection has of claims, to say why nothing was recalled: whether any, whether verified ones and how many,
-- how many wait. uses: claims_status, claim_lexemes_pkey
SELECT EXISTS (SELECT FROM claims) AS claims,
       EXISTS (SELECT FROM claims WHERE status = 'verified') AS any_verified,
       coalesce((SELECT ndoc FROM claim_lexemes WHERE lexeme = ''), 0) AS verified,
       (SELECT count(*) FROM (SELECT FROM claims WHERE status = 'proposed' LIMIT 1000) AS waiting) AS proposed
