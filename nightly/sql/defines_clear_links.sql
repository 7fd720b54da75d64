-- Forget where a source uses its terms. in: source. uses: links_from
DELETE FROM links WHERE relation = 'defines' AND from_chunk IN (SELECT id FROM chunks WHERE source = :'source'::text)
