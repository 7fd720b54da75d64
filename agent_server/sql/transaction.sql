-- What unqualified names mean in this transaction, and whether its commit waits until it is on disk.
-- in: search_path, durable
SELECT set_config('search_path', :'search_path'::text, true),
       CASE WHEN NOT :'durable'::boolean THEN set_config('synchronous_commit', 'off', true) END
