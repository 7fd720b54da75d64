-- What each readable file of a collection is, as far as a ranking depends on it: its bytes, how they were read, its
-- authority. out: source, version (a short hash)
SELECT source, left(md5(concat_ws('/', sha256, pipeline_version, status, chunk_count, authority)), 12) AS version
FROM files
WHERE status IN ('indexed', 'partial')
ORDER BY source
