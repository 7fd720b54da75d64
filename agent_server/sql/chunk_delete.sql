-- Take one file's passages away.
-- in: source
DELETE FROM chunks WHERE source = :'source'::text
