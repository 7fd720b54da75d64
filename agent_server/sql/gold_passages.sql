-- The live passages of some sources, copies included: where a gold question's quotes may stand.
-- in: sources. out: chunk_id, source, text, in reading order
SELECT chunk_id, source, text
FROM chunks
WHERE source = ANY (:'sources'::text[]) AND NOT retired
ORDER BY source, chunk_index
