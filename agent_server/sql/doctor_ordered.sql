-- For this transaction: rows come in an index's own order, which the dense index alone has for distances.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('enable_sort', 'off', true), set_config('enable_indexscan', 'on', true)
