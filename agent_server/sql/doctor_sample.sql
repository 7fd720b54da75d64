-- Some searched passages with vector and rarest word: the newest ones, and others from anywhere.
-- in: newest, others (how many). out: id, vector, lexeme and ndoc of the word (NULL without any)
SELECT c.id, c.embedding::text AS vector, rare.lexeme, rare.ndoc
FROM (SELECT id FROM (SELECT id FROM chunks WHERE canonical ORDER BY id DESC LIMIT :'newest'::integer) AS newest
      UNION
      SELECT id FROM (SELECT id FROM chunks WHERE canonical ORDER BY md5(id::text) LIMIT :'others'::integer) AS others) AS s
JOIN chunks c USING (id)
LEFT JOIN LATERAL (
    SELECT t.lexeme, coalesce(l.ndoc, 0) AS ndoc  -- 0: not merged yet
    FROM unnest(c.tsv) AS t LEFT JOIN lexemes l ON l.lexeme = t.lexeme COLLATE "C"
    ORDER BY 2, 1 LIMIT 1) AS rare ON true
WHERE l2_norm(c.embedding) > 0
ORDER BY c.id
