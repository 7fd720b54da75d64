-- First phase of the exact lexical ranking: the score of the n-th best passage among those a cheap query finds.
-- in: tsquery, bm25 (query vector), depth, excluded (paragraph hashes). out: score; no row when fewer are found
-- uses: chunks_tsv
SELECT -(bm25 <#> :'bm25'::sparsevec) AS score
FROM chunks
WHERE canonical AND tsv @@ :'tsquery'::tsquery AND NOT paragraph_hashes && :'excluded'::bigint[]
ORDER BY bm25 <#> :'bm25'::sparsevec
LIMIT 1 OFFSET :'depth'::integer - 1
