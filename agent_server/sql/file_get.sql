-- The ledger row of one source.
-- in: source. uses: files_pkey
SELECT * FROM files WHERE source = :'source'::text
