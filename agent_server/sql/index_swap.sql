-- A new index takes the place and the name of an old one, if there is an old one.
-- in: name, new_name (identifiers)
DROP INDEX IF EXISTS :"name";
ALTER INDEX :"new_name" RENAME TO :"name"
