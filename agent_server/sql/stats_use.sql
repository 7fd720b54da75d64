-- How long searches of a collection take, and how well the dense index was last measured to find. in: collection
-- out: median_ms, p95_ms (NULL without searches), recall and recall_at (unfiltered; NULL before the first audit)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY (timings_ms ->> 'total')::double precision) AS median_ms,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY (timings_ms ->> 'total')::double precision) AS p95_ms,
       (SELECT recall FROM kb.recall_samples
        WHERE collection = :'collection'::text AND NOT filtered ORDER BY at DESC, sample_id DESC LIMIT 1) AS recall,
       (SELECT max(at) FROM kb.recall_samples WHERE collection = :'collection'::text AND NOT filtered) AS recall_at
FROM searches
