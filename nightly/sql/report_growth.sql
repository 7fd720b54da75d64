-- What a collection holds, by the day on which its files were last read. out: day (UTC), files, passages
SELECT (indexed_at AT TIME ZONE 'UTC')::date AS day, count(*) AS files, sum(chunk_count)::bigint AS passages
FROM files
WHERE status IN ('indexed', 'partial')
GROUP BY 1
ORDER BY 1
