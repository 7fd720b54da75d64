-- The number of the column that holds the searched vectors: a re-embedding puts another column there. Naming the
-- table here locks it, so that the answer holds until the end of the transaction.
SELECT attnum AS vector_column
FROM pg_attribute
WHERE attrelid = 'chunks'::regclass AND attname = 'embedding' AND NOT EXISTS (SELECT FROM chunks WHERE false)
