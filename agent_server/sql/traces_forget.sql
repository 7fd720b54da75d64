-- Take back the traces of an evaluation: nobody asked these questions.
-- in: trace_ids (uuid array). uses: searches_pkey
DELETE FROM searches WHERE trace_id = ANY (:'trace_ids'::uuid[])
