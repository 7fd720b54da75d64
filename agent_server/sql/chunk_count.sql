-- How many passages there are, and how many are searched.
SELECT count(*) AS chunks, count(*) FILTER (WHERE canonical) AS canonical, count(*) FILTER (WHERE retired) AS retired,
       count(*) FILTER (WHERE embedding IS NULL) AS without_vector
FROM chunks
