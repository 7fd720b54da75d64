-- The ledger after a re-embedding: files of the old pipeline are of the new one without being read again, and those
-- that the new model has vectors for are no longer partial.
-- in: old_version, new_version, partial (sources), reasons (same order)
UPDATE files f
SET pipeline_version = CASE f.pipeline_version WHEN :'old_version'::text THEN :'new_version'::text
                                               ELSE f.pipeline_version END,
    status = CASE WHEN f.status NOT IN ('indexed', 'partial') THEN f.status
                  WHEN p.source IS NULL THEN 'indexed' ELSE 'partial' END,
    reason = CASE WHEN f.status NOT IN ('indexed', 'partial') THEN f.reason
                  WHEN p.source IS NOT NULL THEN p.reason
                  WHEN f.status = 'partial' THEN '' ELSE f.reason END
FROM files g LEFT JOIN unnest(:'partial'::text[], :'reasons'::text[]) AS p(source, reason) ON p.source = g.source
WHERE f.source = g.source
  AND (f.pipeline_version = :'old_version'::text OR f.status = 'partial' OR p.source IS NOT NULL)
