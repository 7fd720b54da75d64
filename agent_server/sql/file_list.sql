-- The ledger, by source; all files, or those of one status.
-- in: status ('' for all)
SELECT source, root, sha256, size_bytes, media_type, title, dated, authority, status, reason, pipeline_version,
       chunk_count, indexed_at
FROM files
WHERE :'status'::text IN ('', status)
ORDER BY source
