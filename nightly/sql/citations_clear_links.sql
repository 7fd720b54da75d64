-- Forget what a source cites. in: source. uses: links_from
DELETE FROM links WHERE relation = 'cites' AND from_chunk IN (SELECT id FROM chunks WHERE source = :'source'::text)
