-- How many files of a collection ended in each status.
SELECT status, count(*) AS files, sum(chunk_count)::bigint AS passages FROM files GROUP BY status ORDER BY status
