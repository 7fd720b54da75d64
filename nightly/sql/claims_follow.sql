-- Evidence follows its words to where they stand now; of several pieces of one claim that come to one place, the oldest.
-- in: rows (jsonb array of {id, chunk, quote_start}). out: claims
-- uses: claim_evidence_pkey, claim_evidence_claim_chunk_quote_start_key, chunks_pkey
UPDATE claim_evidence e
SET chunk = place.chunk, quote_start = place.quote_start, quote_end = place.quote_start + length(e.quote),
    passage_hash = place.passage_hash, lost_from = NULL
FROM (SELECT DISTINCT ON (l.claim, k.id, r.quote_start) l.id, k.id AS chunk, r.quote_start, k.passage_hash
      FROM jsonb_to_recordset(:'rows'::jsonb) AS r(id bigint, chunk bigint, quote_start integer)
      JOIN claim_evidence l USING (id)
      JOIN chunks k ON k.id = r.chunk AND NOT k.retired
                   AND substr(k.text, r.quote_start + 1, length(l.quote)) = l.quote
      WHERE NOT EXISTS (SELECT FROM claim_evidence o
                        WHERE o.claim = l.claim AND o.chunk = k.id AND o.quote_start = r.quote_start)
      ORDER BY l.claim, k.id, r.quote_start, l.id) AS place
WHERE e.id = place.id
RETURNING e.claim AS id
