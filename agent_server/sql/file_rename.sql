-- Give a file another name: its chunks, and what hangs on them, follow by foreign key; nothing is embedded.
-- in: source, new_source, root, authority
UPDATE files
SET source = :'new_source'::text, root = :'root'::text, authority = :'authority'::real
WHERE source = :'source'::text
