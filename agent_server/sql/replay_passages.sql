-- What became of passages that a search once brought: their files, and their text as it is now.
-- in: sources (text array), chunk_ids (text array)
-- out: chunk_id and text_sha256 are NULL where a file has none of the passages asked for
-- uses: files_pkey, chunks_source_chunk_index_key
SELECT f.source, f.status, f.reason, f.indexed_at, c.chunk_id,
       encode(sha256(convert_to(c.text, 'UTF8')), 'hex') AS text_sha256
FROM files f LEFT JOIN chunks c ON c.source = f.source AND c.chunk_id = ANY (:'chunk_ids'::text[])
WHERE f.source = ANY (:'sources'::text[])
