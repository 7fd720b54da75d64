-- Note from which state of its passages a model has read a source's claims; nothing when it is another by now.
-- in: source, model, version. uses: chunks_source_chunk_index_key
INSERT INTO claim_sources (source, model_version)
SELECT c.source, :'version'::text
FROM (SELECT source, id FROM chunks WHERE source = :'source'::text AND NOT retired ORDER BY chunk_index LIMIT 1) AS c
WHERE :'model'::text || ':' || c.id = :'version'::text
ON CONFLICT (source) DO UPDATE SET model_version = excluded.model_version
