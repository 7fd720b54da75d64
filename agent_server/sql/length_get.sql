-- The mean length that a collection's bm25 vectors are made with; NULL before the first load.
-- in: collection
SELECT avg_length FROM kb.collections WHERE name = :'collection'::text
