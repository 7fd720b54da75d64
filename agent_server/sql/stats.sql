-- What a collection holds and how much room it takes, in one row.
-- in: none; sizes are bytes, indexes included. searched: passages that stand for their copies
SELECT (SELECT count(*) FROM files WHERE status <> 'removed') AS files,
       count(*) AS passages,
       count(*) FILTER (WHERE canonical) AS searched,
       count(*) FILTER (WHERE retired) AS retired,
       count(*) FILTER (WHERE embedding IS NULL) AS without_vector,
       (SELECT count(*) FROM lexemes WHERE lexeme <> '') AS lexemes,
       (SELECT count(*) FROM searches) AS searches,
       (SELECT max(at) FROM searches) AS last_search,
       (SELECT count(*) FROM tool_calls) AS tool_calls,
       pg_total_relation_size('chunks') AS bytes,
       pg_indexes_size('chunks') AS index_bytes,
       (SELECT max(indexed_at) FROM files) AS last_indexed
FROM chunks
