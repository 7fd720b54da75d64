-- Sources whose definitions were read by other rules or from other passages than stand there now.
-- in: rules, everything ('on' for all sources). out: source, and the version that reading it brings it to
-- uses: chunks_source_chunk_index_key, edge_sources_pkey
SELECT s.source, s.version
FROM (SELECT f.source, :'rules'::text || ':' || first.id AS version
      FROM files f CROSS JOIN LATERAL (
          SELECT id FROM chunks c WHERE c.source = f.source ORDER BY chunk_index LIMIT 1) AS first) AS s
LEFT JOIN edge_sources e USING (source)
WHERE e.defines_version IS DISTINCT FROM s.version OR :'everything'::text = 'on'
ORDER BY s.source
