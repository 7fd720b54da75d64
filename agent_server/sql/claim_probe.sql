-- First phase of the exact ranking of claims: the score of the n-th best among those a cheap query finds.
-- in: tsquery, bm25 (query vector), depth. out: score; no row when fewer are found. uses: claims_tsv
SELECT -(bm25 <#> :'bm25'::sparsevec) AS score
FROM claims
WHERE status = 'verified' AND tsv @@ :'tsquery'::tsquery
ORDER BY bm25 <#> :'bm25'::sparsevec
LIMIT 1 OFFSET :'depth'::integer - 1
