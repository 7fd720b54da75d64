-- Recall without a filter as the newest audit left it, unless the dense index was rebuilt for it meanwhile or less than
-- :'days' before it. in: collection, now, days. out: at, recall; no row when there is nothing to go by
SELECT s.at, s.recall
FROM kb.recall_samples s
WHERE s.collection = :'collection'::text AND NOT s.filtered
  AND NOT EXISTS (
      SELECT FROM kb.run_steps r
      WHERE r.job = 'maintain' AND r.collection = s.collection AND r.counts ->> 'rebuilt_for' = 'recall'
        AND r.started_at > least(s.at, :'now'::timestamptz - make_interval(days => :'days'::integer))
  )
ORDER BY s.at DESC, s.sample_id DESC
LIMIT 1
