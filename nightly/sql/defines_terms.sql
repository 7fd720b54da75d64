-- Store terms. in: rows (jsonb array of objects)
INSERT INTO terms (term, folded, chunk, form, scope, from_start, from_end)
SELECT term, folded, chunk, form, scope, from_start, from_end
FROM jsonb_to_recordset(:'rows'::jsonb) AS r(term text, folded text, chunk bigint, form text, scope text,
                                             from_start integer, from_end integer)
