-- What is shown of some claims: the passage each rests on, the others that say it too, and what contradicts it.
-- in: ids (bigint array). out: in no order; a claim whose quote does not stand in its passage is not among them
-- uses: claims_pkey, chunks_pkey, files_pkey, claim_evidence_claim_chunk_quote_start_key, claim_conflicts_pkey,
--       claim_conflicts_other
SELECT c.id, c.confidence, c.verified_by, c.verified_at, c.extractor, c.quote, c.quote_start, c.quote_end,
       k.chunk_id, k.source, f.title, k.page_first, k.heading_path, k.context, k.text, k.authority,
       ARRAY(SELECT o.chunk_id FROM claim_evidence e JOIN chunks o ON o.id = e.chunk
             WHERE e.claim = c.id AND o.id <> c.chunk AND NOT o.retired
             ORDER BY o.authority DESC, o.source, o.chunk_index) AS also_in,
       (SELECT jsonb_agg(jsonb_build_object('id', o.id, 'statement', o.statement, 'chunk_id', p.chunk_id,
                                            'authority', p.authority, 'reason', t.reason)
                         ORDER BY p.authority DESC, o.id)
        FROM (SELECT other AS id, reason FROM claim_conflicts WHERE claim = c.id
              UNION ALL SELECT claim, reason FROM claim_conflicts WHERE other = c.id) AS t
        JOIN claims o ON o.id = t.id AND o.status = 'verified'
        JOIN chunks p ON p.id = o.chunk) AS contradicted_by
FROM claims c
JOIN chunks k ON k.id = c.chunk AND substr(k.text, c.quote_start + 1, c.quote_end - c.quote_start) = c.quote
JOIN files f USING (source)
WHERE c.id = ANY (:'ids'::bigint[])
