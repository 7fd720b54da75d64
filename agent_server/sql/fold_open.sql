-- Which of these passages fold_unset.sql and fold_set.sql are to look at: those with several live copies, and one whose
-- only copy is not the one that stands for it. Most passages of a load have one copy, stored as what it is.
-- in: hashes. uses: chunks_copies
-- out: passage_hash
SELECT passage_hash FROM chunks WHERE passage_hash = ANY (:'hashes'::bytea[]) AND NOT retired
GROUP BY passage_hash HAVING count(*) > 1 OR NOT bool_or(canonical)
