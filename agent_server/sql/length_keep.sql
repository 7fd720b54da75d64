-- The mean length that bm25 vectors are made with, kept as it is until the transaction ends: whoever restates the
-- vectors waits for those that are made with it. Without one nothing is kept, and no row comes out: two transactions
-- that both kept it could not both go on to take it.
-- in: collection
SELECT avg_length FROM kb.collections WHERE name = :'collection'::text AND avg_length IS NOT NULL FOR SHARE
