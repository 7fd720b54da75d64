-- Sources whose citations were read by other rules, under another name or from other passages than stand there now,
-- and sources without passages that others still know by a name.
-- in: rules, everything ('on' for all sources). out: source, version (what reading it brings it to), names (as known)
-- uses: chunks_source_chunk_index_key, edge_sources_pkey
SELECT s.source, s.version, coalesce(e.names, '{}') AS names
FROM (SELECT f.source, coalesce(:'rules'::text || ':' || f.source || ':' || first.id, '') AS version
      FROM files f LEFT JOIN LATERAL (
          SELECT id FROM chunks c WHERE c.source = f.source ORDER BY chunk_index LIMIT 1) AS first ON true) AS s
LEFT JOIN edge_sources e USING (source)
WHERE s.version <> '' AND (e.citations_version IS DISTINCT FROM s.version OR :'everything'::text = 'on')
   OR s.version = '' AND (e.citations_version <> '' OR e.names <> '{}' OR e.wants <> '{}')
ORDER BY s.source
