-- Take the locks of the passages that a transaction changes, in order. Few passages have a lock each, and share that of
-- their group with others that hold few. A lock for each of many would exhaust shared memory: they have their groups
-- alone. Files of a hundred passages would nearly always meet in one of 1,024 groups, and wait for each other.
-- in: collection, groups (integer array), passages (integer array, empty where the groups are to be had alone)
SELECT pg_advisory_xact_lock(hashtext('groups ' || :'collection'::text), slot)
FROM (SELECT DISTINCT slot FROM unnest(:'groups'::integer[]) AS slot ORDER BY slot) AS slots
WHERE cardinality(:'passages'::integer[]) = 0
UNION ALL
SELECT pg_advisory_xact_lock_shared(hashtext('groups ' || :'collection'::text), slot)
FROM (SELECT DISTINCT slot FROM unnest(:'groups'::integer[]) AS slot ORDER BY slot) AS slots
WHERE cardinality(:'passages'::integer[]) > 0
UNION ALL
SELECT pg_advisory_xact_lock(hashtext('passages ' || :'collection'::text), slot)
FROM (SELECT DISTINCT slot FROM unnest(:'passages'::integer[]) AS slot ORDER BY slot) AS slots
