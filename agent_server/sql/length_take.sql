-- The mean length that bm25 vectors are made with, for the one who may change it: waits until no other transaction
-- makes vectors with it, and keeps those that come waiting.
-- in: collection
SELECT avg_length FROM kb.collections WHERE name = :'collection'::text FOR NO KEY UPDATE
