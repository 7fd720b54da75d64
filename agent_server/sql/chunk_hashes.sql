-- The passages that one file holds now.
-- in: source
SELECT DISTINCT passage_hash FROM chunks WHERE source = :'source'::text
