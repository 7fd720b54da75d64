-- Whether a passage is among the nearest to its own vector, asked as a search asks. in: vector, id. uses: chunks_embedding
SELECT :'id'::bigint IN (
    SELECT id FROM (SELECT id FROM chunks WHERE canonical AND embedding IS NOT NULL
                    ORDER BY embedding <=> :'vector'::halfvec LIMIT 20) AS nearest) AS found
