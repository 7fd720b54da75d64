-- The folders that were ingested. whole: false where single files were taken from it alone
SELECT root, path, whole FROM roots ORDER BY root
