-- Verified claims about the same things as some others, with the authority and the source of what they rest on.
-- in: ids. uses: claims_pkey, claims_subjects, chunks_pkey
SELECT c.id, c.kind, c.subject, c.subject_keys, c.statement, k.source, k.authority, c.id = ANY (:'ids'::bigint[]) AS touched
FROM claims c JOIN chunks k ON k.id = c.chunk
WHERE c.status = 'verified'
  AND c.subject_keys && (SELECT array_agg(DISTINCT key) FROM claims o, unnest(o.subject_keys) AS key
                         WHERE o.id = ANY (:'ids'::bigint[]))
ORDER BY c.id
