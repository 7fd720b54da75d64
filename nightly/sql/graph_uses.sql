-- Passages that use a term as one passage defines it. in: chunk (id of the defining passage), folded, limit
-- uses: links_to, chunks_pkey
SELECT l.relation, l.anchor, l.target_label, c.chunk_id, c.context, c.heading_path, c.text
FROM links l JOIN chunks c ON c.id = l.from_chunk
WHERE l.to_chunk = :'chunk'::bigint AND l.relation = 'defines' AND l.target_label = :'folded'::text
ORDER BY c.source, c.chunk_index
LIMIT :'limit'::integer
