-- Note what a source is called, and that its own citations have to be read again. in: source, names
INSERT INTO edge_sources (source, names) VALUES (:'source'::text, :'names'::text[])
ON CONFLICT (source) DO UPDATE SET names = excluded.names, citations_version = ''
