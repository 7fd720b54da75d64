-- The number of pgvector's type in this database: binary arrays name the type of their elements.
-- out: oid
SELECT 'halfvec'::regtype::oid::bigint AS oid
