-- The mean length that bm25 vectors are made with, kept as it is until the transaction ends: whoever restates the
-- vectors waits for those that are made with it.
-- in: collection
SELECT avg_length FROM kb.collections WHERE name = :'collection'::text FOR SHARE
