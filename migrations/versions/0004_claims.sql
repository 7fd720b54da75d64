-- Claims with their evidence, in every collection made before: what sql/collection.sql gives to a new one.
DO $migrate$
DECLARE
    c record;
BEGIN
    FOR c IN SELECT schema_name, reader_role FROM kb.collections ORDER BY name LOOP
        EXECUTE format($claims$
-- Short statements for recall without a model, each a pointer to its evidence: words that stand verbatim in a passage.
-- chunk, quote and what follows them are the leading evidence, the live one of highest authority; claims_settle keeps
-- it so. A claim without live evidence is stale in the transaction that took it away.
CREATE TABLE %1$I.claims (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         text NOT NULL CHECK (kind IN ('definition', 'limit', 'duty', 'exclusion', 'statement')),
    subject      text NOT NULL,                    -- what it is about, as it is written
    subject_keys text[] COLLATE "C" NOT NULL,      -- as it is looked up: terms.fold_term, and codes with a '#'
    statement    text NOT NULL,                    -- understandable alone
    fingerprint  bytea NOT NULL UNIQUE,            -- of its content words in order: near-duplicates are one claim
    status       text NOT NULL CHECK (status IN ('proposed', 'verified', 'rejected', 'stale')),
    stood_as     text CHECK (stood_as IN ('proposed', 'verified')),  -- of a stale one: what it was, and becomes again
    chunk        bigint REFERENCES %1$I.chunks DEFERRABLE INITIALLY DEFERRED,
    quote        text NOT NULL CHECK (quote <> ''),
    quote_start  integer NOT NULL,                 -- characters of the passage's text
    quote_end    integer NOT NULL,
    passage_hash bytea NOT NULL,
    extractor    text NOT NULL,                    -- "rules", "ollama:MODEL", "import"
    confidence   real NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    created_at   timestamptz NOT NULL DEFAULT now(),
    verified_at  timestamptz,
    verified_by  text,                             -- a person, or "rule: NAME"
    tsv          tsvector NOT NULL,                -- subject and statement; never changed in place
    bm25         sparsevec NOT NULL,
    CHECK (quote_start >= 0 AND quote_end > quote_start),
    CHECK (chunk IS NOT NULL OR status IN ('rejected', 'stale')),
    CHECK ((status = 'stale') = (stood_as IS NOT NULL)),
    CHECK (status <> 'verified' OR (verified_at IS NOT NULL AND verified_by IS NOT NULL))
);
ALTER TABLE %1$I.claims ALTER COLUMN bm25 SET STORAGE MAIN;
-- Recall by words, and by the name of a subject: verified claims alone.
CREATE INDEX claims_tsv ON %1$I.claims USING gin (tsv) WITH (fastupdate = off) WHERE status = 'verified';
CREATE INDEX claims_subjects ON %1$I.claims USING gin (subject_keys) WITH (fastupdate = off);
-- Review: the claims of one status, oldest first.
CREATE INDEX claims_status ON %1$I.claims (status, id);
-- Guards the reference to chunks.
CREATE INDEX claims_chunk ON %1$I.claims (chunk);

-- Every place that says a claim, its leading evidence among them. chunk NULL: the passage is gone; where it was is kept
-- until the words are found again.
CREATE TABLE %1$I.claim_evidence (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    claim        bigint NOT NULL REFERENCES %1$I.claims ON DELETE CASCADE,
    chunk        bigint REFERENCES %1$I.chunks DEFERRABLE INITIALLY DEFERRED,
    quote        text NOT NULL CHECK (quote <> ''),
    quote_start  integer NOT NULL,
    quote_end    integer NOT NULL,
    passage_hash bytea NOT NULL,
    vouched      boolean NOT NULL,                 -- a rule has read it here without doubts
    lost_from    text COLLATE "C",                 -- the source whose passage went
    CHECK (quote_start >= 0 AND quote_end > quote_start),
    CHECK ((chunk IS NULL) = (lost_from IS NOT NULL)),
    UNIQUE (claim, chunk, quote_start)
);
CREATE INDEX claim_evidence_chunk ON %1$I.claim_evidence (chunk);
-- Finds what must be looked for again when a source has come in a new version.
CREATE INDEX claim_evidence_lost ON %1$I.claim_evidence (lost_from) WHERE chunk IS NULL;

-- Who did what to a claim, when and why; never changed.
CREATE TABLE %1$I.claim_events (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    claim bigint NOT NULL REFERENCES %1$I.claims ON DELETE CASCADE,
    at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    who   text NOT NULL,
    what  text NOT NULL,                           -- "proposed", "verified", "rejected", "stale", "moved"
    why   text NOT NULL
);
CREATE INDEX claim_events_claim ON %1$I.claim_events (claim, id);

-- Claims about one thing that do not agree, from sources of different authority; both stay, and say so.
CREATE TABLE %1$I.claim_conflicts (
    claim  bigint NOT NULL REFERENCES %1$I.claims ON DELETE CASCADE,
    other  bigint NOT NULL REFERENCES %1$I.claims ON DELETE CASCADE,
    reason text NOT NULL,
    PRIMARY KEY (claim, other),
    CHECK (claim < other)
);
CREATE INDEX claim_conflicts_other ON %1$I.claim_conflicts (other);

-- The state of passages that each source's claims were read from: what still holds is not read again.
CREATE TABLE %1$I.claim_sources (
    source  text COLLATE "C" PRIMARY KEY REFERENCES %1$I.files ON UPDATE CASCADE ON DELETE CASCADE,
    version text NOT NULL DEFAULT '',              -- rules, first passage and authority; '' when not read by rules yet
    model_version text NOT NULL DEFAULT ''         -- language model and first passage; '' when it has not read them
);

-- Document frequency over verified claims; the empty lexeme counts the claims themselves. Deltas as for passages.
CREATE TABLE %1$I.claim_lexemes (
    lexeme text COLLATE "C" PRIMARY KEY,
    ndoc   bigint NOT NULL
);
CREATE TABLE %1$I.claim_lexeme_deltas (
    lexeme text COLLATE "C" NOT NULL,
    d      bigint NOT NULL
);

-- Makes the best live evidence of some claims their leading one. Without any a claim turns stale; a stale one that has
-- evidence again becomes what it was. What a rule has verified rests on what a rule vouches for. Each change is an
-- event. How many claims changed.
CREATE FUNCTION %1$I.claims_settle(ids bigint[], who text, why text) RETURNS bigint
LANGUAGE sql SET search_path = %1$I, pg_temp AS $$
    WITH best AS (
        SELECT c.id, c.status AS stood, e.*
        FROM claims c
        LEFT JOIN LATERAL (
            SELECT e.chunk, e.quote, e.quote_start, e.quote_end, e.passage_hash
            FROM claim_evidence e JOIN chunks k ON k.id = e.chunk
            WHERE e.claim = c.id AND NOT k.retired
              AND (e.vouched OR c.verified_by IS NULL OR c.verified_by NOT LIKE 'rule: %%')
            ORDER BY k.authority DESC, k.source, k.chunk_index, e.quote_start
            LIMIT 1) AS e ON true
        WHERE c.id = ANY (ids)
    ),
    turned AS (
        UPDATE claims c
        SET chunk = b.chunk,
            quote = coalesce(b.quote, c.quote),
            quote_start = coalesce(b.quote_start, c.quote_start),
            quote_end = coalesce(b.quote_end, c.quote_end),
            passage_hash = coalesce(b.passage_hash, c.passage_hash),
            status = CASE WHEN b.chunk IS NULL AND c.status <> 'rejected' THEN 'stale'
                          WHEN b.chunk IS NOT NULL AND c.status = 'stale' THEN c.stood_as
                          ELSE c.status END,
            stood_as = CASE WHEN b.chunk IS NOT NULL THEN NULL
                            WHEN c.status IN ('proposed', 'verified') THEN c.status
                            ELSE c.stood_as END
        FROM best b
        WHERE c.id = b.id AND (c.chunk, c.quote_start, c.quote) IS DISTINCT FROM
                              (b.chunk, coalesce(b.quote_start, c.quote_start), coalesce(b.quote, c.quote))
        RETURNING c.id, b.stood, c.status
    ),
    noted AS (
        INSERT INTO claim_events (claim, who, what, why)
        SELECT id, $2, CASE WHEN status = stood THEN 'moved' ELSE status END, $3 FROM turned ORDER BY id
        RETURNING 1
    )
    SELECT count(*) FROM noted
$$;

-- Claims lose the passages that go, whoever takes them away.
CREATE FUNCTION %1$I.claims_lose_deleted() RETURNS trigger
LANGUAGE plpgsql SET search_path = %1$I, pg_temp AS $$
DECLARE
    touched bigint[];
BEGIN
    WITH lost AS (
        UPDATE claim_evidence e SET chunk = NULL, lost_from = g.source FROM gone g WHERE e.chunk = g.id
        RETURNING e.claim)
    SELECT array_agg(DISTINCT claim) INTO touched FROM lost;
    IF touched IS NOT NULL THEN
        PERFORM claims_settle(touched, session_user::text, 'a passage that says it was changed or removed');
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION %1$I.claims_lose_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = %1$I, pg_temp AS $$
DECLARE
    touched bigint[];
BEGIN
    WITH lost AS (
        UPDATE claim_evidence SET chunk = NULL, lost_from = OLD.source WHERE chunk = OLD.id RETURNING claim)
    SELECT array_agg(DISTINCT claim) INTO touched FROM lost;
    IF touched IS NOT NULL THEN
        PERFORM claims_settle(touched, session_user::text, 'a passage that says it was changed or retired');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER claims_lose_deleted AFTER DELETE ON %1$I.chunks
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION %1$I.claims_lose_deleted();
CREATE TRIGGER claims_lose_changed AFTER UPDATE OF text, retired ON %1$I.chunks FOR EACH ROW
    WHEN (OLD.text IS DISTINCT FROM NEW.text OR (NEW.retired AND NOT OLD.retired))
    EXECUTE FUNCTION %1$I.claims_lose_changed();

-- Keeps the document frequencies of verified claims true, whatever turns a claim.
CREATE FUNCTION %1$I.count_claim() RETURNS trigger
LANGUAGE plpgsql SET search_path = %1$I, pg_temp AS $$
DECLARE
    sign integer := 0;
BEGIN
    IF TG_OP <> 'DELETE' AND NEW.status = 'verified' THEN
        sign := 1;
    END IF;
    IF TG_OP <> 'INSERT' AND OLD.status = 'verified' THEN
        sign := sign - 1;
    END IF;
    IF sign <> 0 THEN
        INSERT INTO claim_lexeme_deltas
        SELECT lexeme, sign FROM unnest(CASE TG_OP WHEN 'DELETE' THEN OLD.tsv ELSE NEW.tsv END)
        UNION ALL VALUES ('', sign);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_claim AFTER INSERT OR UPDATE OF status OR DELETE ON %1$I.claims
    FOR EACH ROW EXECUTE FUNCTION %1$I.count_claim();
        $claims$, c.schema_name);
        -- A database that was moved to another server may lack its roles until `kb db roles` makes them, with grants.
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = c.reader_role) THEN
            EXECUTE format('GRANT SELECT ON %1$I.claims, %1$I.claim_evidence, %1$I.claim_conflicts, %1$I.claim_lexemes TO %2$I',
                           c.schema_name, c.reader_role);
        END IF;
    END LOOP;
END $migrate$;
