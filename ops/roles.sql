-- What the owner role of your own Postgres needs. Run once as a superuser:
--   psql -v owner=kb_owner -v password=… -v database=knowledge_bank -f ops/roles.sql
-- then KB_DATABASE_URL=postgresql://kb_owner:…@host/knowledge_bank

CREATE ROLE :"owner" LOGIN CREATEROLE PASSWORD :'password';   -- CREATEROLE: each collection has a reader role
CREATE DATABASE :"database" OWNER :"owner";
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;               -- readers are let in one by one
\connect :"database"
CREATE EXTENSION IF NOT EXISTS vector;                        -- needs a superuser where it is not marked trusted
