-- Store references that lead nowhere, with the reason. in: rows (jsonb array of objects)
INSERT INTO dangling_links (from_chunk, anchor, from_start, from_end, target_label, reason)
SELECT from_chunk, anchor, from_start, from_end, target_label, reason
FROM jsonb_to_recordset(:'rows'::jsonb) AS r(from_chunk bigint, anchor text, from_start integer, from_end integer,
                                             target_label text, reason text)
