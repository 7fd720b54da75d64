-- Keep one tool call of a model.
-- in: tool, arguments (jsonb), outcome ("ok" or the error's code), trace_id ('' without a search)
INSERT INTO tool_calls (tool, arguments, outcome, trace_id)
VALUES (:'tool'::text, :'arguments'::jsonb, :'outcome'::text, nullif(:'trace_id'::text, '')::uuid)
