-- Carry a file's authority to its chunks, where it changed.
-- in: source, authority
UPDATE chunks SET authority = :'authority'::real
WHERE source = :'source'::text AND authority <> :'authority'::real
