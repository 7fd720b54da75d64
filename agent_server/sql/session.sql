-- Settings of a search's transaction.
-- in: ef_search, iterative_scan, timeout_ms, seqscan ('off' where the HNSW index stands)
-- out: vector_column (see vector_column.sql)
-- Iterative scans go on when dead entries leave too few rows. The planner believes that a sequential scan
-- is cheap because it does not count the cost of unpacking tsvectors: with the indexes there, it may not choose one.
SELECT set_config('hnsw.ef_search', :'ef_search'::text, true),
       set_config('hnsw.iterative_scan', :'iterative_scan'::text, true),
       set_config('statement_timeout', :'timeout_ms'::text, true),
       set_config('enable_seqscan', :'seqscan'::text, true),
       set_config('jit', 'off', true),
       (SELECT attnum FROM pg_attribute
        WHERE attrelid = 'chunks'::regclass AND attname = 'embedding') AS vector_column
