-- Remove the ledger row of a file that holds no passages (any left go with it). in: source
DELETE FROM files WHERE source = :'source'::text
