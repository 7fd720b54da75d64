-- Claims with the evidence for them: a new one is proposed, one that is known gets one more place that says it.
-- in: config, avg_length, extractor, who, why, rows (jsonb array of objects)
-- out: ids and fingerprints of all these claims. A row whose quote does not stand in its passage, word by word, is passed over.
-- The passages stay until the transaction ends: whoever takes them away waits, and finds the evidence.
-- uses: claims_fingerprint_key, chunks_pkey
WITH incoming AS MATERIALIZED (
    SELECT r.*, decode(r.print, 'hex') AS fingerprint, k.passage_hash, k.source,
           to_tsvector(:'config'::regconfig, r.words) || r.extras::tsvector AS tsv
    FROM jsonb_to_recordset(:'rows'::jsonb) AS r(
             kind text, subject text, subject_keys text[], statement text, print text, chunk bigint, quote text,
             quote_start integer, quote_end integer, confidence real, vouched boolean, words text, extras text)
    JOIN chunks k ON k.id = r.chunk AND NOT k.retired
                 AND substr(k.text, r.quote_start + 1, r.quote_end - r.quote_start) = r.quote
    FOR KEY SHARE OF k
),
made AS (
    INSERT INTO claims (kind, subject, subject_keys, statement, fingerprint, status, chunk, quote, quote_start, quote_end,
                        passage_hash, extractor, confidence, tsv, bm25)
    SELECT DISTINCT ON (fingerprint)
           kind, subject, subject_keys, statement, fingerprint, 'proposed', chunk, quote, quote_start, quote_end,
           passage_hash, :'extractor'::text, confidence, tsv, bm25_doc(tsv, :'avg_length'::double precision)
    FROM incoming
    ORDER BY fingerprint, vouched DESC, chunk, quote_start
    -- Rules that have changed may name the subject of a claim better.
    ON CONFLICT (fingerprint) DO UPDATE
        SET kind = excluded.kind, subject = excluded.subject, subject_keys = excluded.subject_keys
        WHERE claims.extractor = 'rules' AND excluded.extractor = 'rules'
          AND (claims.kind, claims.subject_keys) IS DISTINCT FROM (excluded.kind, excluded.subject_keys)
    RETURNING id, fingerprint, xmax = 0 AS is_new
),
noted AS (
    INSERT INTO claim_events (claim, who, what, why)
    SELECT id, :'who'::text, 'proposed', :'why'::text FROM made WHERE is_new ORDER BY id
),
known AS (
    SELECT id, fingerprint FROM made
    UNION
    SELECT id, fingerprint FROM claims WHERE fingerprint IN (SELECT fingerprint FROM incoming)
),
-- What is found again in a source takes the place of what was lost there.
found_again AS (
    DELETE FROM claim_evidence e USING known JOIN incoming i USING (fingerprint)
    WHERE e.claim = known.id AND e.chunk IS NULL AND e.lost_from = i.source AND e.quote = i.quote
),
evidence AS (
    INSERT INTO claim_evidence (claim, chunk, quote, quote_start, quote_end, passage_hash, vouched)
    SELECT DISTINCT ON (known.id, i.chunk, i.quote_start)
           known.id, i.chunk, i.quote, i.quote_start, i.quote_end, i.passage_hash, i.vouched
    FROM known JOIN incoming i USING (fingerprint)
    ORDER BY known.id, i.chunk, i.quote_start, i.vouched DESC
    -- What a rule vouches for, another extractor does not take back.
    ON CONFLICT (claim, chunk, quote_start) DO UPDATE
        SET quote = excluded.quote, quote_end = excluded.quote_end,
            vouched = excluded.vouched OR (claim_evidence.vouched AND :'extractor'::text <> 'rules')
)
SELECT id, fingerprint FROM known ORDER BY id
