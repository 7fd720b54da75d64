-- Fix the mean length that a collection's bm25 vectors are made with.
-- in: name, avg_length
UPDATE kb.collections SET avg_length = :'avg_length'::double precision WHERE name = :'name'::text
