-- About what avg_length would be now, from every n-th passage: reading all text search vectors takes a second for
-- 20,000 of them, and follows every small ingestion.
-- in: step (1: all of them)
SELECT avg(length_lexemes(tsv)) AS avg_length FROM chunks WHERE canonical AND id % :'step'::bigint = 0
