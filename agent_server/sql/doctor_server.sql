-- What the server is, what it may use, and what the indexes need.
-- out: pgvector ('' when the extension is missing), now, database, database_bytes, maintenance_bytes, buffer_bytes,
--      workers (of a parallel build), shared_memory (its kind), data_directory ('' when it may not be asked)
SELECT coalesce((SELECT extversion FROM pg_extension WHERE extname = 'vector'), '') AS pgvector,
       clock_timestamp() AS now,
       current_database()::text AS database,
       pg_database_size(current_database()) AS database_bytes,
       pg_size_bytes(current_setting('maintenance_work_mem')) AS maintenance_bytes,
       pg_size_bytes(current_setting('shared_buffers')) AS buffer_bytes,
       current_setting('max_parallel_maintenance_workers')::integer AS workers,
       current_setting('dynamic_shared_memory_type') AS shared_memory,
       CASE WHEN pg_has_role('pg_read_all_settings', 'USAGE') THEN current_setting('data_directory') ELSE '' END
           AS data_directory
