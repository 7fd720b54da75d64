-- Passages by name or id, searched or not, with what decides whether they can be.
-- in: chunk_ids (text array), ids (bigint array), hashes (paragraphs passed over, bigint array)
-- out: passed_over: those of the hashes that it holds;  changed_at: when its file was last read
-- uses: chunks_chunk_id, chunks_pkey, files_pkey
SELECT c.id, c.chunk_id, c.source, f.title, c.heading_path, c.authority, c.retired, c.canonical,
       c.embedding IS NOT NULL AS has_vector, c.text, f.indexed_at AS changed_at,
       ARRAY(SELECT h FROM unnest(c.paragraph_hashes) AS h WHERE h = ANY (:'hashes'::bigint[])) AS passed_over
FROM chunks c JOIN files f USING (source)
WHERE c.chunk_id = ANY (:'chunk_ids'::text[]) OR c.id = ANY (:'ids'::bigint[])
ORDER BY c.source, c.chunk_index
