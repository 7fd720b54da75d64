-- The indexes of a collection, with what a search needs of them.
-- out: table, name, method, valid, predicate ('' without), opclasses
SELECT t.relname AS "table", k.relname AS name, a.amname AS method, i.indisvalid AND i.indisready AS valid,
       coalesce(pg_get_expr(i.indpred, i.indrelid), '') AS predicate,
       (SELECT string_agg(o.opcname, ',') FROM unnest(i.indclass::oid[]) AS c(oid) JOIN pg_opclass o ON o.oid = c.oid)
           AS opclasses
FROM pg_index i
JOIN pg_class t ON t.oid = i.indrelid
JOIN pg_class k ON k.oid = i.indexrelid
JOIN pg_am a ON a.oid = k.relam
WHERE t.relnamespace = current_schema()::regnamespace
ORDER BY t.relname, k.relname
