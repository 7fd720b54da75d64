-- The authority of one file. in: source, authority
UPDATE files SET authority = :'authority'::real WHERE source = :'source'::text AND authority <> :'authority'::real
