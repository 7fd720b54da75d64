-- The newest searches. in: limit. uses: searches_at
SELECT trace_id, at, query, request, candidates, jsonb_array_length(passages) AS hits, degraded, diagnostic, timings_ms
FROM searches ORDER BY at DESC LIMIT :'limit'::integer
