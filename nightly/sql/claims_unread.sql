-- Take away evidence in a source that the rules do not read there any more. What a person has decided on stays.
-- in: source, rows (jsonb array of {print, chunk, quote_start}: what they read now). out: the claims that lost some
-- uses: chunks_source_chunk_index_key, claim_evidence_chunk
WITH unread AS (
    DELETE FROM claim_evidence e
    USING chunks k, claims c
    WHERE k.source = :'source'::text AND e.chunk = k.id AND c.id = e.claim AND c.extractor = 'rules'
      AND c.status <> 'rejected' AND (c.verified_by IS NULL OR c.verified_by LIKE 'rule: %')
      AND NOT EXISTS (
          SELECT FROM jsonb_to_recordset(:'rows'::jsonb) AS r(print text, chunk bigint, quote_start integer)
          WHERE r.chunk = e.chunk AND r.quote_start = e.quote_start AND decode(r.print, 'hex') = c.fingerprint)
    RETURNING e.claim
)
SELECT DISTINCT claim AS id FROM unread ORDER BY 1
