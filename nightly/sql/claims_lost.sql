-- Evidence that lost its passage and may stand in this source now: it was there, or its passage has come to be there.
-- in: source. Claims that a rule must read again by itself are left out.
-- uses: claim_evidence_lost, chunks_copies
SELECT e.id, e.claim, e.quote, e.passage_hash
FROM claim_evidence e JOIN claims c ON c.id = e.claim
WHERE e.chunk IS NULL
  AND (e.lost_from = :'source'::text
       OR EXISTS (SELECT FROM chunks k WHERE k.passage_hash = e.passage_hash AND k.source = :'source'::text))
  AND NOT (c.extractor = 'rules' AND c.status <> 'rejected' AND (c.verified_by IS NULL OR c.verified_by LIKE 'rule: %'))
ORDER BY e.id
