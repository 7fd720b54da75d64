-- How long this transaction's statements wait for a lock. in: ms
SELECT set_config('lock_timeout', :'ms'::text, true)
