-- Asked by a reader role about itself: schemas of Knowledge Bank besides its own that it may enter, what it may change
-- in its own, whose member it is, and whether it has powers.
-- in: schema (its own). out: reachable, writable (tables), member_of (arrays), powerful
SELECT coalesce((SELECT array_agg(n.nspname::text ORDER BY n.nspname) FROM pg_namespace n
                 WHERE (n.nspname = 'kb' OR n.nspname LIKE 'kb\_%') AND n.nspname <> :'schema'::text
                   AND has_schema_privilege(n.oid, 'USAGE')), '{}') AS reachable,
       coalesce((SELECT array_agg(t.relname::text ORDER BY t.relname) FROM pg_class t
                 WHERE t.relnamespace = :'schema'::text::regnamespace AND t.relkind = 'r'
                   AND has_table_privilege(t.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')), '{}') AS writable,
       coalesce((SELECT array_agg(g.rolname::text ORDER BY g.rolname)
                 FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid), '{}') AS member_of,
       r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolbypassrls OR r.rolreplication AS powerful
FROM pg_roles r
WHERE r.rolname = session_user
