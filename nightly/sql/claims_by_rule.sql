-- What a rule vouches for is verified by it; what no rule vouches for any more, and no person has decided on, is proposed
-- again. in: ids, who, rules (jsonb object: claim id -> name of the rule). uses: claims_pkey, claim_evidence
WITH now AS (
    SELECT c.id, c.status, best.*
    FROM claims c
    LEFT JOIN LATERAL (
        SELECT e.chunk, e.quote, e.quote_start, e.quote_end, e.passage_hash, e.vouched
        FROM claim_evidence e JOIN chunks k ON k.id = e.chunk
        WHERE e.claim = c.id AND NOT k.retired
        ORDER BY e.vouched DESC, k.authority DESC, k.source, k.chunk_index, e.quote_start
        LIMIT 1) AS best ON true
    WHERE c.id = ANY (:'ids'::bigint[])
),
turned AS (
    UPDATE claims c
    SET status = CASE WHEN now.vouched THEN 'verified' ELSE 'proposed' END,
        stood_as = NULL,
        verified_at = CASE WHEN now.vouched THEN now() END,
        verified_by = CASE WHEN now.vouched THEN 'rule: ' || coalesce(:'rules'::jsonb ->> c.id::text, c.kind) END,
        chunk = now.chunk, quote = now.quote, quote_start = now.quote_start, quote_end = now.quote_end,
        passage_hash = now.passage_hash
    FROM now
    WHERE c.id = now.id AND now.chunk IS NOT NULL
      AND (now.status = 'proposed' AND now.vouched
           OR now.status = 'stale' AND NOT now.vouched AND c.verified_by LIKE 'rule: %')
    RETURNING c.id, c.status, c.verified_by
)
INSERT INTO claim_events (claim, who, what, why)
SELECT id, :'who'::text, status,
       CASE status WHEN 'verified' THEN verified_by || ': the quote stands in the passage, the form is unambiguous'
                   ELSE 'the rules doubt it where it stands now' END
FROM turned
ORDER BY id
