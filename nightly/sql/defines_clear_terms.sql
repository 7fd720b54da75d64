-- Forget the terms of a source. in: source. uses: terms_chunk
DELETE FROM terms WHERE chunk IN (SELECT id FROM chunks WHERE source = :'source'::text)
