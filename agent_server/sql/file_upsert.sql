-- Write the ledger row of one file.
INSERT INTO files AS f
    (source, root, sha256, size_bytes, media_type, title, dated, metadata, authority, status, reason,
     pipeline_version, chunk_count, indexed_at)
VALUES
    (:'source'::text, :'root'::text, :'sha256'::text, :'size_bytes'::bigint, :'media_type'::text, :'title'::text,
     nullif(:'dated'::text, '')::date, :'metadata'::jsonb, :'authority'::real, :'status'::text, :'reason'::text,
     :'pipeline_version'::text, :'chunk_count'::integer, now())
ON CONFLICT (source) DO UPDATE SET
    root = excluded.root, sha256 = excluded.sha256, size_bytes = excluded.size_bytes,
    media_type = excluded.media_type, title = excluded.title, dated = excluded.dated,
    metadata = excluded.metadata, authority = excluded.authority, status = excluded.status,
    reason = excluded.reason, pipeline_version = excluded.pipeline_version, chunk_count = excluded.chunk_count,
    indexed_at = excluded.indexed_at
