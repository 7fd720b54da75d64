-- Store where terms are used: from the words that use one to the words that define it. in: rows (jsonb array of objects)
INSERT INTO links (from_chunk, to_chunk, relation, anchor, from_start, from_end, to_start, to_end, target_label)
SELECT from_chunk, to_chunk, 'defines', anchor, from_start, from_end, to_start, to_end, target_label
FROM jsonb_to_recordset(:'rows'::jsonb) AS r(from_chunk bigint, to_chunk bigint, anchor text, from_start integer,
                                             from_end integer, to_start integer, to_end integer, target_label text)
ON CONFLICT DO NOTHING
