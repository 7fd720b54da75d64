-- What was taken in day by day (UTC), newest first. Files that came again in a new version count on their last day.
-- in: days (how many with something on them). out: day, files, passages
SELECT (indexed_at AT TIME ZONE 'UTC')::date AS day, count(*) AS files, sum(chunk_count)::bigint AS passages
FROM files
WHERE status IN ('indexed', 'partial')
GROUP BY day
ORDER BY day DESC
LIMIT :'days'::integer
