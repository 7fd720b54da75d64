-- Write down which model the second column is filled for: the next run goes on only with the same.
-- in: contract (JSON). out: the statement to execute, for DDL takes no parameters
SELECT format('COMMENT ON COLUMN chunks.embedding_next IS %L', :'contract'::text)
