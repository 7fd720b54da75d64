-- Forget which references of a source led nowhere. in: source. uses: dangling_links_from
DELETE FROM dangling_links WHERE from_chunk IN (SELECT id FROM chunks WHERE source = :'source'::text)
