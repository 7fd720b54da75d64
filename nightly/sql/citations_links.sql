-- Store citations. Passages that have gone meanwhile are waited for and left out: what replaced them comes next.
-- in: rows (jsonb array of objects). uses: chunks_pkey, links_from
INSERT INTO links (from_chunk, to_chunk, relation, anchor, from_start, from_end, to_start, to_end, target_label)
SELECT r.from_chunk, r.to_chunk, 'cites', r.anchor, r.from_start, r.from_end, r.to_start, r.to_end, r.target_label
FROM jsonb_to_recordset(:'rows'::jsonb) AS r(from_chunk bigint, to_chunk bigint, anchor text, from_start integer,
                                             from_end integer, to_start integer, to_end integer, target_label text)
JOIN (SELECT c.id FROM chunks c
      WHERE c.id IN (SELECT (x ->> 'to_chunk')::bigint FROM jsonb_array_elements(:'rows'::jsonb) AS x)
      ORDER BY c.id FOR KEY SHARE) AS target ON target.id = r.to_chunk
ON CONFLICT DO NOTHING
