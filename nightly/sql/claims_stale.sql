-- Sources whose claims were read by other rules, from other passages or at another authority than stand there now.
-- in: rules, everything ('on' for all sources). out: source, and the version that reading it brings it to
-- uses: chunks_source_chunk_index_key, claim_sources_pkey
SELECT s.source, s.version
FROM (SELECT f.source, :'rules'::text || ':' || first.id || ':' || f.authority AS version
      FROM files f CROSS JOIN LATERAL (
          SELECT id FROM chunks c WHERE c.source = f.source ORDER BY chunk_index LIMIT 1) AS first) AS s
LEFT JOIN claim_sources e USING (source)
WHERE e.version IS DISTINCT FROM s.version OR :'everything'::text = 'on'
ORDER BY s.source
