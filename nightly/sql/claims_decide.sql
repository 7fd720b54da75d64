-- A person's decision on some claims. Verified becomes only what stands verbatim in a live passage.
-- in: ids, status ('verified' or 'rejected'), who, why. out: the claims that were decided on
-- uses: claims_pkey, chunks_pkey
WITH due AS MATERIALIZED (
    SELECT id FROM claims WHERE id = ANY (:'ids'::bigint[]) ORDER BY id FOR NO KEY UPDATE
),
decided AS (
    UPDATE claims c
    SET status = :'status'::text, stood_as = NULL,
        verified_at = CASE :'status'::text WHEN 'verified' THEN now() END,
        verified_by = CASE :'status'::text WHEN 'verified' THEN :'who'::text END
    FROM due
    WHERE c.id = due.id
      AND (:'status'::text = 'rejected' AND c.status <> 'rejected'
           OR :'status'::text = 'verified' AND c.status <> 'stale'
              AND EXISTS (SELECT FROM chunks k
                          WHERE k.id = c.chunk AND NOT k.retired
                            AND substr(k.text, c.quote_start + 1, c.quote_end - c.quote_start) = c.quote))
    RETURNING c.id, c.status
),
noted AS (
    INSERT INTO claim_events (claim, who, what, why)
    SELECT id, :'who'::text, status, :'why'::text FROM decided ORDER BY id
)
SELECT id FROM decided ORDER BY id
