-- Sources that a language model has not read as they stand now.
-- in: model. out: source, and the version that reading it brings it to
-- uses: chunks_source_chunk_index_key, claim_sources_pkey
SELECT s.source, s.version
FROM (SELECT f.source, :'model'::text || ':' || first.id AS version
      FROM files f CROSS JOIN LATERAL (
          SELECT id FROM chunks c WHERE c.source = f.source AND NOT c.retired ORDER BY chunk_index LIMIT 1) AS first) AS s
LEFT JOIN claim_sources e USING (source)
WHERE e.model_version IS DISTINCT FROM s.version
ORDER BY s.source
