-- Away with an index that no search may rely on, without blocking any.
-- in: name (identifier)
DROP INDEX CONCURRENTLY IF EXISTS :"name"
