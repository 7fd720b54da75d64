-- How long searches and tool calls go back. out: oldest (NULL without any). uses: searches_at
SELECT least((SELECT min(at) FROM searches), (SELECT min(at) FROM tool_calls)) AS oldest
