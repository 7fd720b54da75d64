-- Keep the trace of one search.
INSERT INTO searches (trace_id, query, request, terms, variables, candidates, passages, degraded, diagnostic, timings_ms)
VALUES (:'trace_id'::uuid, :'query'::text, :'request'::jsonb, :'terms'::jsonb, :'variables'::jsonb,
        :'candidates'::jsonb, :'passages'::jsonb, :'degraded'::jsonb, nullif(:'diagnostic'::text, ''),
        :'timings_ms'::jsonb)
