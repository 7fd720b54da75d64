-- Files that hold another number of passages than the ledger says, or none although they are indexed.
-- out: source, root, status, stated, held
SELECT f.source, f.root, f.status, f.chunk_count AS stated, coalesce(c.held, 0) AS held
FROM files f LEFT JOIN (SELECT source, count(*) AS held FROM chunks GROUP BY source) c USING (source)
WHERE f.status <> 'failed'
  AND (f.chunk_count <> coalesce(c.held, 0) OR f.status IN ('indexed', 'partial') AND c.held IS NULL)
ORDER BY f.source
