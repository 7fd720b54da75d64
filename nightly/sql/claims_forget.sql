-- Forget proposals that changed rules do not make any more and that nobody has decided on. in: ids
-- uses: claims_pkey, claim_evidence_claim_chunk_quote_start_key
DELETE FROM claims c
WHERE c.id = ANY (:'ids'::bigint[]) AND c.extractor = 'rules' AND c.verified_by IS NULL
  AND (c.status = 'proposed' OR c.status = 'stale')
  AND NOT EXISTS (SELECT FROM claim_evidence e WHERE e.claim = c.id)
