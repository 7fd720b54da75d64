-- Evidence follows its words to where they stand now. in: rows (jsonb array of {id, chunk, quote_start}). out: claims
-- uses: claim_evidence_pkey, chunks_pkey
UPDATE claim_evidence e
SET chunk = k.id, quote_start = r.quote_start, quote_end = r.quote_start + length(e.quote),
    passage_hash = k.passage_hash, lost_from = NULL
FROM jsonb_to_recordset(:'rows'::jsonb) AS r(id bigint, chunk bigint, quote_start integer)
JOIN chunks k ON k.id = r.chunk AND NOT k.retired
WHERE e.id = r.id AND substr(k.text, r.quote_start + 1, length(e.quote)) = e.quote
  AND NOT EXISTS (SELECT FROM claim_evidence o WHERE o.claim = e.claim AND o.chunk = k.id AND o.quote_start = r.quote_start)
RETURNING e.claim AS id
