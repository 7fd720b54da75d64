-- Passages that a search cannot find as it should.
-- out: searched; of those: without_vector, refused (without one, as the ledger says), zero (no question is near them);
--      width of the column, 0 when it takes any
SELECT count(*) FILTER (WHERE c.canonical) AS searched,
       count(*) FILTER (WHERE c.canonical AND c.embedding IS NULL AND f.status <> 'partial') AS without_vector,
       count(*) FILTER (WHERE c.canonical AND c.embedding IS NULL AND f.status = 'partial') AS refused,
       count(*) FILTER (WHERE c.canonical AND l2_norm(c.embedding) = 0) AS zero,
       (SELECT greatest(atttypmod, 0) FROM pg_attribute
        WHERE attrelid = 'chunks'::regclass AND attname = 'embedding') AS width
FROM chunks c LEFT JOIN files f USING (source)
