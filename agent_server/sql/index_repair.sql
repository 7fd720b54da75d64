-- Build an index again where it stands, for one that is not valid and has no statement of its own here.
-- in: name (identifier)
REINDEX INDEX CONCURRENTLY :"name"
