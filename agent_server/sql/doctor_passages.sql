-- Passages that a search cannot find as it should.
-- out: searched, without_vector and zero (vectors that no question is near), unfiled (passages of files whose
--      ledger counts another number of them)
SELECT count(*) FILTER (WHERE canonical) AS searched,
       count(*) FILTER (WHERE canonical AND embedding IS NULL) AS without_vector,
       count(*) FILTER (WHERE canonical AND l2_norm(embedding) = 0) AS zero,
       (SELECT count(*)
        FROM files f LEFT JOIN (SELECT source, count(*) AS held FROM chunks GROUP BY source) c USING (source)
        WHERE f.status <> 'failed' AND f.chunk_count <> coalesce(c.held, 0)) AS unfiled
FROM chunks
