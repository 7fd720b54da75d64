-- A sample of what a collection was asked, each question with its filter once: the same rows for the same seed.
-- in: filtered (whether those with a filter are wanted), seed, limit
-- out: query, filters (as Filters.to_json writes them), vector (pgvector's text), model_digest (what the vector is of)
-- uses: none; reads all recorded searches, which are deleted when they are old
SELECT query, filters, vector, model_digest
FROM (SELECT DISTINCT ON (query, request -> 'filters')
             query, request -> 'filters' AS filters, variables ->> 'vector' AS vector,
             request #>> '{collection,model_digest}' AS model_digest
      FROM searches
      WHERE variables ->> 'vector' <> '' AND (request -> 'filters' <> '{}') = :'filtered'::boolean
      ORDER BY query, request -> 'filters', at DESC) AS asked
ORDER BY md5(query || filters::text || :'seed'::text)
LIMIT :'limit'::integer
