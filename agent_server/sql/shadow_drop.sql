-- Away with the second column, its index and its comment: the re-embedding is given up.
ALTER TABLE chunks DROP COLUMN IF EXISTS embedding_next
