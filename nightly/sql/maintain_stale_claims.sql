-- Forget claims that rules read, that no passage says any more, that no person has decided on, and that have been stale
-- since before a time: should their words come back, the rules read them again. in: before. out: claims (how many went)
-- uses: claim_events_claim, claim_evidence_claim_chunk_quote_start_key
WITH forgotten AS (
    DELETE FROM claims c
    WHERE c.extractor = 'rules' AND c.status = 'stale' AND (c.verified_by IS NULL OR c.verified_by LIKE 'rule: %')
      AND NOT EXISTS (SELECT FROM claim_evidence e WHERE e.claim = c.id AND e.chunk IS NOT NULL)
      AND NOT EXISTS (SELECT FROM claim_events v WHERE v.claim = c.id AND v.at >= :'before'::timestamptz)
    RETURNING 1
)
SELECT count(*) AS claims FROM forgotten
