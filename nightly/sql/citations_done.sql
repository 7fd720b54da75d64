-- Note from which state of its passages a source's citations were read, and what it looks for elsewhere.
-- in: source, version, wants
INSERT INTO edge_sources (source, citations_version, wants)
VALUES (:'source'::text, :'version'::text, :'wants'::text[])
ON CONFLICT (source) DO UPDATE SET citations_version = excluded.citations_version, wants = excluded.wants
