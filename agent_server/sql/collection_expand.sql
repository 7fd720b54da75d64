-- Set which edges a collection's searches follow. in: name, cites, defines ('' leaves one as it is)
UPDATE kb.collections
SET expand_cites = coalesce(nullif(:'cites'::text, '')::boolean, expand_cites),
    expand_defines = coalesce(nullif(:'defines'::text, '')::boolean, expand_defines)
WHERE lower(name) = lower(:'name'::text)
