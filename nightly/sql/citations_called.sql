-- Sources that are known by a name. in: name. uses: edge_sources_names
SELECT source FROM edge_sources WHERE names @> ARRAY[:'name'::text] ORDER BY source
