-- Note from which state of its passages a source's claims were read. in: source, version
INSERT INTO claim_sources (source, version) VALUES (:'source'::text, :'version'::text)
ON CONFLICT (source) DO UPDATE SET version = excluded.version
