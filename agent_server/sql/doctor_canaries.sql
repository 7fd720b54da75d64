-- A few passages with the vectors that were stored when they came in, first the oldest and short ones.
-- in: limit. out: context, text, vector
SELECT context, text, embedding::text AS vector
FROM (SELECT * FROM chunks WHERE canonical AND l2_norm(embedding) > 0 ORDER BY id LIMIT 20 * :'limit'::integer) AS oldest
ORDER BY length(context) + length(text), id
LIMIT :'limit'::integer
