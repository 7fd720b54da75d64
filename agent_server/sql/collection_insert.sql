-- Register a collection; its schema is made by collection.sql in the same transaction.
INSERT INTO kb.collections
    (name, schema_name, reader_role, description, text_search_config, embedder, model, model_digest, dimensions,
     context_tokens, query_prefix, passage_prefix, chunk_size, chunk_overlap)
VALUES
    (:'name'::text, :'schema_name'::text, :'reader_role'::text, :'description'::text,
     :'text_search_config'::regconfig::text, :'embedder'::text, :'model'::text, :'model_digest'::text,
     :'dimensions'::integer, :'context_tokens'::integer, :'query_prefix'::text, :'passage_prefix'::text,
     :'chunk_size'::integer, :'chunk_overlap'::integer)
