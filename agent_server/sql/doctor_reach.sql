-- Asked by a reader role about itself: schemas of Knowledge Bank besides its own that it may enter, and whether it
-- is more than a reader. in: schema (its own). out: reachable (array), too_strong
SELECT coalesce(array_agg(n.nspname::text ORDER BY n.nspname)
                    FILTER (WHERE has_schema_privilege(n.oid, 'USAGE')), '{}') AS reachable,
       (SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls
               OR EXISTS (SELECT FROM pg_auth_members m WHERE m.member = r.oid)
        FROM pg_roles r WHERE rolname = session_user) AS too_strong
FROM pg_namespace n
WHERE (n.nspname = 'kb' OR n.nspname LIKE 'kb\_%') AND n.nspname <> :'schema'::text
