-- How far a re-embedding is.
-- out: passages, filled (those with a new vector), searched
SELECT count(*) AS passages, count(embedding_next) AS filled, count(*) FILTER (WHERE canonical) AS searched
FROM chunks
