-- Keep what a recall audit measured. in: as the columns are named; run_id may be NULL
INSERT INTO kb.recall_samples (run_id, collection, at, filtered, searches, k, ef_search, recall, index_ms, exact_ms)
VALUES (:'run_id'::bigint, :'collection'::text, :'at'::timestamptz, :'filtered'::boolean, :'searches'::integer,
        :'k'::integer, :'ef_search'::integer, :'recall'::double precision, :'index_ms'::double precision,
        :'exact_ms'::double precision)
