-- Settings of a recall's transaction. in: timeout_ms
-- The planner does not count the cost of unpacking tsvectors: with the indexes there, it may not read all claims.
SELECT set_config('statement_timeout', :'timeout_ms'::text, true), set_config('enable_seqscan', 'off', true),
       set_config('jit', 'off', true)
