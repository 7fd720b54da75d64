-- Away with the dense index before a large load: filling it row by row costs more than building it anew.
DROP INDEX IF EXISTS chunks_embedding
