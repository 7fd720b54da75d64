-- Passages without exactly one copy that stands for them: live ones without any, and those with several.
-- out: passage_hash, live, standing
SELECT passage_hash, count(*) FILTER (WHERE NOT retired) AS live, count(*) FILTER (WHERE canonical) AS standing
FROM chunks
GROUP BY passage_hash
HAVING count(*) FILTER (WHERE canonical) <> (count(*) FILTER (WHERE NOT retired) > 0)::integer
ORDER BY passage_hash
