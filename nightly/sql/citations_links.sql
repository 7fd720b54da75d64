-- Store citations. Passages that have gone meanwhile are waited for and left out: what replaced them comes next.
-- in: rows (jsonb array of objects), config (of the collection). uses: chunks_pkey, links_from
INSERT INTO links (from_chunk, to_chunk, relation, anchor, from_start, from_end, to_start, to_end, target_label, said)
SELECT r.from_chunk, r.to_chunk, 'cites', r.anchor, r.from_start, r.from_end, r.to_start, r.to_end, r.target_label,
       citing_lexemes(:'config'::regconfig, f.text, r.from_start, r.from_end)
FROM jsonb_to_recordset(:'rows'::jsonb) AS r(from_chunk bigint, to_chunk bigint, anchor text, from_start integer,
                                             from_end integer, to_start integer, to_end integer, target_label text)
JOIN chunks f ON f.id = r.from_chunk
JOIN (SELECT c.id FROM chunks c
      WHERE c.id IN (SELECT (x ->> 'to_chunk')::bigint FROM jsonb_array_elements(:'rows'::jsonb) AS x)
      ORDER BY c.id FOR KEY SHARE) AS target ON target.id = r.to_chunk
ON CONFLICT DO NOTHING
