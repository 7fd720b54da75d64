-- The slowest recorded searches. in: limit. out: milliseconds, embed_ms NULL where no vector was asked for
SELECT at, query, (timings_ms ->> 'total')::double precision AS total_ms,
       (timings_ms ->> 'embed')::double precision AS embed_ms, (timings_ms ->> 'sql')::double precision AS sql_ms
FROM searches
WHERE timings_ms ? 'total'
ORDER BY total_ms DESC, at DESC
LIMIT :'limit'::integer
