-- A second column for vectors, beside the one that is searched: nothing is rewritten.
-- in: dimensions (integer)
ALTER TABLE chunks
    ADD COLUMN embedding_next halfvec(:dimensions),
    ALTER COLUMN embedding_next SET STORAGE MAIN
