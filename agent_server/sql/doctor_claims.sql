-- Claims that are served or wait for review although their words do not stand in a live passage.
-- out: claims, unfounded, example (the id of one)
SELECT count(*) AS claims, count(*) FILTER (WHERE lost) AS unfounded, min(id) FILTER (WHERE lost) AS example
FROM (SELECT c.id, k.id IS NULL OR k.retired OR substring(k.text FROM c.quote_start + 1 FOR c.quote_end - c.quote_start)
                 IS DISTINCT FROM c.quote AS lost
      FROM claims c LEFT JOIN chunks k ON k.id = c.chunk
      WHERE c.status IN ('verified', 'proposed')) AS looked_at
