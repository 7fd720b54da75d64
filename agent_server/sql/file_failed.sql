-- Say that a file could not be finished; passages of its earlier version stay.
INSERT INTO files AS f (source, root, sha256, size_bytes, media_type, status, reason, pipeline_version)
VALUES (:'source'::text, :'root'::text, :'sha256'::text, :'size_bytes'::bigint, :'media_type'::text, 'failed',
        :'reason'::text, :'pipeline_version'::text)
ON CONFLICT (source) DO UPDATE SET status = 'failed', reason = excluded.reason, indexed_at = now()
