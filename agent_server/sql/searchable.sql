-- How many passages have a vector to be searched by, counted up to a limit.
-- in: limit. out: searchable
SELECT count(*) AS searchable
FROM (SELECT FROM chunks WHERE canonical AND embedding IS NOT NULL LIMIT :'limit'::integer) AS counted
