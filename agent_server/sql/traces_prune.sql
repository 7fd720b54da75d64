-- Delete recorded searches and tool calls that are older than they are kept for.
-- in: before (timestamp with time zone). out: searches, tool_calls (how many went). uses: searches_at
WITH old_searches AS (
    DELETE FROM searches WHERE at < :'before'::timestamptz RETURNING 1
),
old_calls AS (
    DELETE FROM tool_calls WHERE at < :'before'::timestamptz RETURNING 1
)
SELECT (SELECT count(*) FROM old_searches) AS searches, (SELECT count(*) FROM old_calls) AS tool_calls
