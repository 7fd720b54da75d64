-- All that a file's passages were made of, to make another collection of them.
-- in: source. out: in reading order; embedding as text, NULL where there is none
-- uses: chunks_source_chunk_index_key
SELECT chunk_index, text, context, heading_path, label, page_first, page_last, char_start, char_end,
       paragraph_hashes, paragraph_spans, retired, embedding::text AS embedding
FROM chunks
WHERE source = :'source'::text
ORDER BY chunk_index
