-- The version of a source's passages as claims_stale.sql names it; no row without passages. in: rules, source
-- uses: chunks_source_chunk_index_key
SELECT :'rules'::text || ':' || c.id || ':' || f.authority AS version
FROM chunks c JOIN files f USING (source)
WHERE source = :'source'::text
ORDER BY chunk_index
LIMIT 1
