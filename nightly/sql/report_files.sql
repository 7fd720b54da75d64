-- Files that are not in, or not whole, with the reason, the newest first. in: limit
SELECT source, status, reason, indexed_at
FROM files
WHERE status NOT IN ('indexed', 'removed')
ORDER BY indexed_at DESC, source
LIMIT :'limit'::integer
