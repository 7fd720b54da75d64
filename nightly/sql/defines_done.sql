-- Note from which state of its passages a source's definitions were read. in: source, version
INSERT INTO edge_sources (source, defines_version) VALUES (:'source'::text, :'version'::text)
ON CONFLICT (source) DO UPDATE SET defines_version = excluded.defines_version
