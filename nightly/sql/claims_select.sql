-- Claims for review, with where each stands now; only what is asked for.
-- in: limit; each only when it is in use: ids, status, kind, subject (a key), sources (regular expression of the leading
--     passage's source, or of where it was), extractor, text (words of the statement, folded), max_confidence
-- out: oldest first
-- uses: claims_status, claims_pkey, chunks_pkey
SELECT c.id, c.kind, c.subject, c.subject_keys, c.statement, c.status, c.stood_as, c.quote, c.extractor, c.confidence,
       c.created_at, c.verified_at, c.verified_by, k.chunk_id, coalesce(k.source, lost.source) AS source,
       (SELECT count(*) FROM claim_evidence e WHERE e.claim = c.id AND e.chunk IS NOT NULL) AS places,
       (SELECT count(*) FROM claim_conflicts t WHERE c.id IN (t.claim, t.other)) AS conflicts
FROM claims c
LEFT JOIN chunks k ON k.id = c.chunk
LEFT JOIN LATERAL (SELECT lost_from AS source FROM claim_evidence e
                   WHERE e.claim = c.id AND e.chunk IS NULL ORDER BY e.id LIMIT 1) AS lost ON true
WHERE true
\if :{?ids}
  AND c.id = ANY (:'ids'::bigint[])
\endif
\if :{?status}
  AND c.status = :'status'::text
\endif
\if :{?kind}
  AND c.kind = :'kind'::text
\endif
\if :{?subject}
  AND c.subject_keys && ARRAY[:'subject'::text]
\endif
\if :{?sources}
  AND coalesce(k.source, lost.source) ~ :'sources'::text
\endif
\if :{?extractor}
  AND c.extractor = :'extractor'::text
\endif
\if :{?text}
  AND position(lower(:'text'::text) IN lower(c.statement)) > 0
\endif
\if :{?max_confidence}
  AND c.confidence <= :'max_confidence'::real
\endif
ORDER BY c.id
LIMIT :'limit'::integer
