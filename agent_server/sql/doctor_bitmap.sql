-- For this transaction: rows come from indexes alone, and through bitmaps, as GIN has them.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'off', true),
       set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'on', true)
