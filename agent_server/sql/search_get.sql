-- One recorded search, by the beginning of its id.
-- in: trace_id
SELECT * FROM searches WHERE trace_id::text LIKE :'trace_id'::text || '%' ORDER BY at DESC LIMIT 2
