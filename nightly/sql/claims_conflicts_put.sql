-- Note which claims contradict each other. in: rows (jsonb array of {claim, other, reason})
INSERT INTO claim_conflicts (claim, other, reason)
SELECT claim, other, reason FROM jsonb_to_recordset(:'rows'::jsonb) AS r(claim bigint, other bigint, reason text)
ON CONFLICT (claim, other) DO UPDATE SET reason = excluded.reason
