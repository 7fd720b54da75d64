-- Verified claims for a question, by what it names or by its words.
-- in:  bm25         IDF weights of the question's terms
--      lexemes      the terms, quoted, to be told which of them a claim holds
--      candidates   how many at most
--      one of:  keys     how what it names may be written (claims.subject_keys); definitions come first
--               tsquery  claims by words, the best ones by BM25
--      holding, config   with keys, when in use: words that a claim must hold besides, in any order
-- out: in no order; held are the places, from 1, of the terms in `lexemes`
-- uses: claims_subjects or claims_tsv, claims_pkey, chunks_pkey
SELECT c.id, c.kind, c.subject, c.subject_keys, c.statement, -(c.bm25 <#> :'bm25'::sparsevec) AS score, k.authority,
       ARRAY(SELECT n FROM unnest(:'lexemes'::text[]) WITH ORDINALITY AS t(lexeme, n)
             WHERE c.tsv @@ t.lexeme::tsquery ORDER BY n) AS held
FROM (SELECT id FROM claims
      WHERE status = 'verified'
\if :{?keys}
        AND subject_keys && :'keys'::text[]
\if :{?holding}
        AND tsv @@ plainto_tsquery(:'config'::regconfig, :'holding'::text)
\endif
      ORDER BY (kind = 'definition') DESC, bm25 <#> :'bm25'::sparsevec, id
\else
        AND tsv @@ :'tsquery'::tsquery
      ORDER BY bm25 <#> :'bm25'::sparsevec, id
\endif
      LIMIT :'candidates'::integer) AS found
JOIN claims c USING (id)
JOIN chunks k ON k.id = c.chunk
