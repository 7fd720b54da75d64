-- Recall of a collection's dense index over time; of several measurements at one time (ef_search raised step by step)
-- the last, which is what was in force then. in: collection. uses: recall_samples_of
SELECT DISTINCT ON (at, filtered) at, filtered, searches, k, ef_search, recall, index_ms, exact_ms
FROM kb.recall_samples
WHERE collection = :'collection'::text
ORDER BY at, filtered, sample_id DESC
