-- Second half: give the flag to the best copy. in: hashes. uses: chunks_copies
UPDATE chunks d SET canonical = true
FROM unnest(:'hashes'::bytea[]) AS t(hash),
     LATERAL (SELECT id FROM chunks WHERE passage_hash = t.hash AND NOT retired
              ORDER BY authority DESC, source, chunk_index LIMIT 1) AS best
WHERE d.id = best.id AND NOT d.canonical
