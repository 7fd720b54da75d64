-- Remove all of a collection as a unit.
-- in: schema, reader, database (identifiers)
DROP SCHEMA :"schema" CASCADE;
REVOKE CONNECT ON DATABASE :"database" FROM :"reader";
DROP ROLE :"reader"
