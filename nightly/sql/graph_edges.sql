-- Edges from and to a passage, in the order of the words they were read from; so many each way and relation.
-- in: chunk (id), limit. uses: links_from, links_to, chunks_pkey
SELECT e.outgoing, e.relation, e.anchor, e.target_label, c.chunk_id, c.context, c.heading_path, c.text
FROM (VALUES ('cites'), ('defines')) AS r(relation)
CROSS JOIN LATERAL (
    (SELECT true AS outgoing, relation, anchor, target_label, to_chunk AS other, from_start, id
     FROM links WHERE from_chunk = :'chunk'::bigint AND relation = r.relation
     ORDER BY from_start, from_end, to_chunk, to_start LIMIT :'limit'::integer)
    UNION ALL
    (SELECT false, relation, anchor, target_label, from_chunk, from_start, id
     FROM links WHERE to_chunk = :'chunk'::bigint AND relation = r.relation
     LIMIT :'limit'::integer)) AS e
JOIN chunks c ON c.id = e.other
ORDER BY e.relation, e.outgoing DESC, CASE WHEN e.outgoing THEN e.from_start END, c.source, c.chunk_index, e.id
