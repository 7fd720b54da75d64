-- The passages that most edges lead to. in: limit. uses: links_to, chunks_pkey
SELECT h.relation, h.edges, c.chunk_id, c.context
FROM (SELECT to_chunk, relation, count(*) AS edges FROM links
      GROUP BY to_chunk, relation ORDER BY count(*) DESC, to_chunk LIMIT :'limit'::integer) AS h
JOIN chunks c ON c.id = h.to_chunk
ORDER BY h.edges DESC, c.chunk_id, h.relation
