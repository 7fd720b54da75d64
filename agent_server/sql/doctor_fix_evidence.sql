-- Evidence whose words do not stand where it says is evidence no more. out: claim
UPDATE claim_evidence e SET chunk = NULL, lost_from = coalesce(k.source, '')
FROM claim_evidence b LEFT JOIN chunks k ON k.id = b.chunk
WHERE e.id = b.id AND b.chunk IS NOT NULL
  AND (k.id IS NULL OR k.retired OR substring(k.text FROM b.quote_start + 1 FOR b.quote_end - b.quote_start) <> b.quote)
