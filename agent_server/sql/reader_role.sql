-- Make the reader role of a collection if it is missing, let it log in, and set its password. psql's \gexec would do the same.
-- in: role, password. Both are quoted here: DDL takes no parameters.
-- out: the statements to execute, in order
SELECT format('CREATE ROLE %I LOGIN NOINHERIT NOCREATEDB NOCREATEROLE', :'role'::text)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'role'::text)
UNION ALL
SELECT format('ALTER ROLE %I RESET ALL', :'role'::text)
UNION ALL
SELECT format('ALTER ROLE %I LOGIN PASSWORD %L', :'role'::text, :'password'::text)
