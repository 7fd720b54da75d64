-- A passage by its name. in: chunk_id. uses: chunks_chunk_id
SELECT id, chunk_id, context, heading_path, text FROM chunks WHERE chunk_id = :'chunk_id'::text
