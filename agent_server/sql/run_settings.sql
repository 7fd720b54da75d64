-- What some recorded searches were really asked, to hold against what should have been asked.
-- in: trace_ids (uuid array). out: asked (jsonb: options with the collection's settings filled in), digest (of the
--     model), searches; one row for each way in which they were asked
-- uses: searches_pkey
SELECT request - 'session' - 'collection' AS asked, request #>> '{collection,model_digest}' AS digest,
       count(*) AS searches
FROM searches
WHERE trace_id = ANY (:'trace_ids'::uuid[])
GROUP BY 1, 2
ORDER BY searches DESC
