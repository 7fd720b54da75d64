-- First half of choosing the copy that stands for its equals: take the flag from a copy that is not the best.
-- The best is the one of highest authority, then by source and position. in: hashes. uses: chunks_copies
UPDATE chunks d SET canonical = false
FROM unnest(:'hashes'::bytea[]) AS t(hash),
     LATERAL (SELECT id FROM chunks WHERE passage_hash = t.hash AND NOT retired
              ORDER BY authority DESC, source, chunk_index LIMIT 1) AS best
WHERE d.passage_hash = t.hash AND d.canonical AND d.id <> best.id
