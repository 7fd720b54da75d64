-- Every place that says a claim, live ones first. in: id. uses: claim_evidence_claim_chunk_quote_start_key, chunks_pkey
SELECT k.chunk_id, e.quote, e.quote_start, e.quote_end, e.vouched, e.lost_from, k.authority, e.chunk = c.chunk AS leads
FROM claim_evidence e JOIN claims c ON c.id = e.claim LEFT JOIN chunks k ON k.id = e.chunk
WHERE e.claim = :'id'::bigint
ORDER BY e.chunk IS NULL, k.authority DESC, k.source, k.chunk_index, e.quote_start
