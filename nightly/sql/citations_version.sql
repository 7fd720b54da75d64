-- The version of a source's passages as citations_stale.sql names it; no row without passages. in: rules, source
-- uses: chunks_source_chunk_index_key
SELECT :'rules'::text || ':' || source || ':' || id AS version
FROM chunks WHERE source = :'source'::text ORDER BY chunk_index LIMIT 1
