-- Have the claims that doctor_claims.sql counts, and stale ones with live evidence, rest on what evidence there is: run
-- it after doctor_fix_evidence.sql. out: how many changed
SELECT claims_settle(array_agg(c.id), session_user::text, 'kb doctor: its words do not stand in its passage') AS changed
FROM claims c LEFT JOIN chunks k ON k.id = c.chunk
WHERE c.status IN ('verified', 'proposed')
  AND (k.id IS NULL OR k.retired
       OR substring(k.text FROM c.quote_start + 1 FOR c.quote_end - c.quote_start) IS DISTINCT FROM c.quote)
HAVING count(*) > 0
