-- Settings of expand.sql, until the savepoint before it is rolled back to. in: timeout_ms
-- A bitmap scan would read all edges of a hub to sort them; the index gives the first ones in order.
SELECT set_config('statement_timeout', :'timeout_ms'::text, true), set_config('enable_bitmapscan', 'off', true)
