-- From now on a collection's vectors come from another model.
-- in: name, embedder, model, model_digest, dimensions, context_tokens, query_prefix, passage_prefix
UPDATE kb.collections
SET embedder = :'embedder'::text, model = :'model'::text, model_digest = :'model_digest'::text,
    dimensions = :'dimensions'::integer, context_tokens = :'context_tokens'::integer,
    query_prefix = :'query_prefix'::text, passage_prefix = :'passage_prefix'::text
WHERE name = :'name'::text
