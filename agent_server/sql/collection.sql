-- Everything of one collection, in one schema: dropping, dumping, moving or granting it is one statement.
-- in: schema (identifier), dimensions (integer)
-- The shared part stands in schema.sql, what a search may read in reader_grants.sql.

CREATE SCHEMA :"schema";

-- A folder that was ingested; only files under it can be found missing at its next sync.
CREATE TABLE :"schema".roots (
    root text COLLATE "C" PRIMARY KEY,
    path text NOT NULL UNIQUE,                     -- absolute; sources never are
    whole boolean NOT NULL DEFAULT true            -- false: single files were taken from it; the rest is not asked for
);

-- The ledger: one row per file ever seen, with a true status and its reason.
CREATE TABLE :"schema".files (
    source           text COLLATE "C" PRIMARY KEY, -- path relative to its root, forward slashes
    root             text NOT NULL REFERENCES :"schema".roots,
    sha256           text NOT NULL,
    size_bytes       bigint NOT NULL,
    media_type       text NOT NULL,
    title            text NOT NULL DEFAULT '',
    dated            date,
    metadata         jsonb NOT NULL DEFAULT '{}',  -- front matter, cleaned
    authority        real NOT NULL DEFAULT 0 CHECK (authority BETWEEN 0 AND 1),
    status           text NOT NULL CHECK (status IN ('indexed', 'partial', 'empty', 'rejected', 'encrypted',
                         'damaged', 'no_text', 'too_large', 'failed', 'removed')),
    reason           text NOT NULL DEFAULT '',
    pipeline_version text NOT NULL,                -- extractor + chunker + model: another one means "read again"
    chunk_count      integer NOT NULL DEFAULT 0,
    indexed_at       timestamptz NOT NULL DEFAULT now()
);

-- Passages. tsv, bm25 and flags stand in one row: joining them per candidate doubled the time of a search.
CREATE TABLE :"schema".chunks (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source           text COLLATE "C" NOT NULL REFERENCES :"schema".files ON UPDATE CASCADE ON DELETE CASCADE,
    chunk_index      integer NOT NULL,
    chunk_id         text COLLATE "C" GENERATED ALWAYS AS (source || '::' || chunk_index) STORED,
    text             text NOT NULL CHECK (text <> ''),
    context          text NOT NULL,                -- "Title > Section": embedded and indexed with the text
    heading_path     text[] NOT NULL,
    label            text NOT NULL,                -- numbering of the innermost heading: "4.2", "Article 6"
    page_first       integer,
    page_last        integer,
    char_start       integer NOT NULL,             -- in the extracted document
    char_end         integer NOT NULL,
    passage_hash     bytea NOT NULL,               -- sha256 of the normalised text: equal passages are one result
    paragraph_hashes bigint[] NOT NULL,            -- whole paragraphs of 80 characters and more
    paragraph_spans  int4[] NOT NULL,              -- start, end of each within text, flattened
    canonical        boolean NOT NULL,             -- the copy that stands for its equals; the only one searched
    authority        real NOT NULL,
    retired          boolean NOT NULL,             -- kept and listed, never searched
    tsv              tsvector NOT NULL,            -- words, '#' identifiers, '~' bigrams; never changed in place
    bm25             sparsevec NOT NULL,
    embedding        halfvec(:dimensions),         -- NULL: the embedder refused this text
    marks            jsonb NOT NULL DEFAULT '[]',  -- headings, links, anchors: [kind, start, end, value] within text
    CHECK (NOT (retired AND canonical)),
    UNIQUE (source, chunk_index)
);
-- bm25 and embedding are read for every candidate: keep them in the row. text and tsv may move out.
ALTER TABLE :"schema".chunks
    ALTER COLUMN bm25 SET STORAGE MAIN,
    ALTER COLUMN embedding SET STORAGE MAIN;

CREATE UNIQUE INDEX chunks_chunk_id ON :"schema".chunks (chunk_id);
-- Prevents two rows from standing for one passage, in two ingestions at once too.
CREATE UNIQUE INDEX chunks_canonical ON :"schema".chunks (passage_hash) WHERE canonical;
-- Finds the copies of a passage, best first, to choose the one that stands for them and to list the others.
CREATE INDEX chunks_copies ON :"schema".chunks (passage_hash, authority DESC, source, chunk_index);
-- Finds live copies that another row stands for: a filter may leave them and not that row.
CREATE INDEX chunks_others ON :"schema".chunks (passage_hash) WHERE NOT canonical AND NOT retired;
-- Lexical candidates. The pending list makes insertion 1.7 times as fast; it is kept short, and a load empties it at
-- its end (pending_flush.sql), so that only searches during a load read through it.
CREATE INDEX chunks_tsv ON :"schema".chunks USING gin (tsv) WITH (gin_pending_list_limit = 1024) WHERE canonical;
-- Finds passages that share a paragraph, to fold near copies.
CREATE INDEX chunks_paragraphs ON :"schema".chunks USING gin (paragraph_hashes) WITH (gin_pending_list_limit = 1024)
    WHERE NOT retired;
-- Dense candidates: hnsw_create.sql, after the first load.

-- Document frequency over canonical rows; the empty lexeme counts the rows themselves (N).
CREATE TABLE :"schema".lexemes (
    lexeme text COLLATE "C" PRIMARY KEY,
    ndoc   bigint NOT NULL
);
-- Passages not yet counted in lexemes, or still counted: appended in each file's transaction, merged after each run, so
-- that files do not queue up behind the rows of common words. Copies: what goes must be counted too.
CREATE TABLE :"schema".lexeme_deltas (
    tsv tsvector NOT NULL,
    d   integer NOT NULL                           -- 1: comes, -1: goes
);
-- Read once, soon: compressing costs more than it saves.
ALTER TABLE :"schema".lexeme_deltas ALTER COLUMN tsv SET STORAGE EXTERNAL;

-- Edges between passages, each with the words it was read from. Offsets are characters of the chunks' own text.
-- Passages that are replaced or removed take their edges along, in both directions.
CREATE TABLE :"schema".links (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    from_chunk   bigint NOT NULL REFERENCES :"schema".chunks ON DELETE CASCADE,
    to_chunk     bigint NOT NULL REFERENCES :"schema".chunks ON DELETE CASCADE,
    relation     text NOT NULL CHECK (relation IN ('cites', 'defines')),
    anchor       text NOT NULL,                    -- the words that say so, verbatim
    from_start   integer NOT NULL,
    from_end     integer NOT NULL,
    to_start     integer NOT NULL,                 -- where the cited paragraph, or the definition, stands
    to_end       integer NOT NULL,
    target_label text NOT NULL,                    -- what was named: "§ 12.4(a)(1)", "Article 6", "PEP 8"
    said         text[] COLLATE "C" NOT NULL DEFAULT '{}', -- of a citation: citing_lexemes of its words
    CHECK (from_start < from_end AND to_start <= to_end)
);
-- What a passage leads to. Unique: the same words lead to the same place once.
CREATE UNIQUE INDEX links_from ON :"schema".links (from_chunk, relation, from_start, from_end, to_chunk, to_start);
-- What leads to a passage: hubs, and the edges that go with it.
CREATE INDEX links_to ON :"schema".links (to_chunk, relation);

-- References whose target was not found, and why.
CREATE TABLE :"schema".dangling_links (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    from_chunk   bigint NOT NULL REFERENCES :"schema".chunks ON DELETE CASCADE,
    anchor       text NOT NULL,
    from_start   integer NOT NULL,
    from_end     integer NOT NULL,
    target_label text NOT NULL,
    reason       text NOT NULL,
    CHECK (from_start < from_end)
);
CREATE INDEX dangling_links_from ON :"schema".dangling_links (from_chunk);

-- Defined terms and the words that define them.
CREATE TABLE :"schema".terms (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    term       text NOT NULL,                      -- as it is written where it is defined
    folded     text COLLATE "C" NOT NULL,          -- as it is looked up
    chunk      bigint NOT NULL REFERENCES :"schema".chunks ON DELETE CASCADE,
    form       text NOT NULL,                      -- how it is defined: "means", "glossary", ...
    scope      text NOT NULL,                      -- where the definition holds: "section", "part", "document", ...
    from_start integer NOT NULL,
    from_end   integer NOT NULL,
    CHECK (from_start < from_end)
);
CREATE INDEX terms_folded ON :"schema".terms (folded);
CREATE INDEX terms_chunk ON :"schema".terms (chunk);

-- The state of passages that each source's edges were made from: what still holds is not done again.
CREATE TABLE :"schema".edge_sources (
    source            text COLLATE "C" PRIMARY KEY REFERENCES :"schema".files ON UPDATE CASCADE ON DELETE CASCADE,
    citations_version text NOT NULL DEFAULT '',    -- rules, name and first passage; '' when it must be done again
    defines_version   text NOT NULL DEFAULT '',
    names             text[] NOT NULL DEFAULT '{}', -- keys that other sources may cite it or its parts by
    wants             text[] NOT NULL DEFAULT '{}'  -- keys that its own references look for in other sources
);
-- Finds the sources whose references may lead elsewhere when a source comes, changes or goes.
CREATE INDEX edge_sources_wants ON :"schema".edge_sources USING gin (wants);
CREATE INDEX edge_sources_names ON :"schema".edge_sources USING gin (names);

-- Short statements for recall without a model, each a pointer to its evidence: words that stand verbatim in a passage.
-- chunk, quote and what follows them are the leading evidence, the live one of highest authority; claims_settle keeps
-- it so. A claim without live evidence is stale in the transaction that took it away.
CREATE TABLE :"schema".claims (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind         text NOT NULL CHECK (kind IN ('definition', 'limit', 'duty', 'exclusion', 'statement')),
    subject      text NOT NULL,                    -- what it is about, as it is written
    subject_keys text[] COLLATE "C" NOT NULL,      -- as it is looked up: terms.fold_term, and codes with a '#'
    statement    text NOT NULL,                    -- understandable alone
    fingerprint  bytea NOT NULL UNIQUE,            -- of its content words in order: near-duplicates are one claim
    status       text NOT NULL CHECK (status IN ('proposed', 'verified', 'rejected', 'stale')),
    stood_as     text CHECK (stood_as IN ('proposed', 'verified')),  -- of a stale one: what it was, and becomes again
    chunk        bigint REFERENCES :"schema".chunks DEFERRABLE INITIALLY DEFERRED,
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
ALTER TABLE :"schema".claims ALTER COLUMN bm25 SET STORAGE MAIN;
-- Recall by words, and by the name of a subject: verified claims alone.
CREATE INDEX claims_tsv ON :"schema".claims USING gin (tsv) WITH (fastupdate = off) WHERE status = 'verified';
CREATE INDEX claims_subjects ON :"schema".claims USING gin (subject_keys) WITH (fastupdate = off);
-- Review: the claims of one status, oldest first.
CREATE INDEX claims_status ON :"schema".claims (status, id);
-- Guards the reference to chunks.
CREATE INDEX claims_chunk ON :"schema".claims (chunk);

-- Every place that says a claim, its leading evidence among them. chunk NULL: the passage is gone; where it was is kept
-- until the words are found again.
CREATE TABLE :"schema".claim_evidence (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    claim        bigint NOT NULL REFERENCES :"schema".claims ON DELETE CASCADE,
    chunk        bigint REFERENCES :"schema".chunks DEFERRABLE INITIALLY DEFERRED,
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
CREATE INDEX claim_evidence_chunk ON :"schema".claim_evidence (chunk);
-- Finds what must be looked for again when a source has come in a new version.
CREATE INDEX claim_evidence_lost ON :"schema".claim_evidence (lost_from) WHERE chunk IS NULL;

-- Who did what to a claim, when and why; never changed.
CREATE TABLE :"schema".claim_events (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    claim bigint NOT NULL REFERENCES :"schema".claims ON DELETE CASCADE,
    at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    who   text NOT NULL,
    what  text NOT NULL,                           -- "proposed", "verified", "rejected", "stale", "moved"
    why   text NOT NULL
);
CREATE INDEX claim_events_claim ON :"schema".claim_events (claim, id);

-- Claims about one thing that do not agree, from sources of different authority; both stay, and say so.
CREATE TABLE :"schema".claim_conflicts (
    claim  bigint NOT NULL REFERENCES :"schema".claims ON DELETE CASCADE,
    other  bigint NOT NULL REFERENCES :"schema".claims ON DELETE CASCADE,
    reason text NOT NULL,
    PRIMARY KEY (claim, other),
    CHECK (claim < other)
);
CREATE INDEX claim_conflicts_other ON :"schema".claim_conflicts (other);

-- The state of passages that each source's claims were read from: what still holds is not read again.
CREATE TABLE :"schema".claim_sources (
    source  text COLLATE "C" PRIMARY KEY REFERENCES :"schema".files ON UPDATE CASCADE ON DELETE CASCADE,
    version text NOT NULL DEFAULT '',              -- rules, first passage and authority; '' when not read by rules yet
    model_version text NOT NULL DEFAULT ''         -- language model and first passage; '' when it has not read them
);

-- Document frequency over verified claims; the empty lexeme counts the claims themselves. Deltas as for passages.
CREATE TABLE :"schema".claim_lexemes (
    lexeme text COLLATE "C" PRIMARY KEY,
    ndoc   bigint NOT NULL
);
CREATE TABLE :"schema".claim_lexeme_deltas (
    tsv tsvector NOT NULL,
    d   integer NOT NULL
);

-- One row per search, written after the answer.
CREATE TABLE :"schema".searches (
    trace_id   uuid PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    query      text NOT NULL,
    request    jsonb NOT NULL,                     -- top_k, fusion, weights, session settings
    terms      jsonb NOT NULL,                     -- lexeme, query count, document frequency, weight
    variables  jsonb NOT NULL,                     -- what hybrid.sql was run with, by name
    candidates jsonb NOT NULL,                     -- how many per arm, folded, refilled
    passages   jsonb NOT NULL,                     -- chunk_id, score, ranks, digest of the text, in order
    degraded   jsonb NOT NULL,
    diagnostic text,
    timings_ms jsonb NOT NULL
);
CREATE INDEX searches_at ON :"schema".searches (at DESC);

-- One row per tool call of a model, refused ones too.
CREATE TABLE :"schema".tool_calls (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT now(),
    tool      text NOT NULL,
    arguments jsonb NOT NULL,
    outcome   text NOT NULL,                       -- "ok" or the error's code
    trace_id  uuid
);

-- Dimension of a lexeme in bm25 vectors: stable across Postgres versions, platforms and dumps.
CREATE FUNCTION :"schema".lexdim(lexeme text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ((('x' || substr(md5(lexeme), 1, 8))::bit(32)::bigint) % 1000000000 + 1)::integer;

-- Length of a document in word lexemes: identifiers ('#…') repeat what the words say already.
CREATE FUNCTION :"schema".length_lexemes(tsv tsvector) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (SELECT coalesce(sum(cardinality(positions)), 0)::bigint FROM unnest(tsv) WHERE lexeme NOT LIKE '#%');

-- Document side of BM25 (Robertson and Zaragoza, 2009): tf (k1 + 1) / (tf + k1 (1 - b + b dl / avgdl)).
-- The inner product with a vector of IDF weights is the score.
CREATE FUNCTION :"schema".bm25_doc(tsv tsvector, avgdl double precision,
                                   k1 double precision DEFAULT 1.2, b double precision DEFAULT 0.75)
RETURNS sparsevec
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT coalesce('{' || string_agg(concat(dim, ':', weight), ',') || '}/1000000000', '{}/1000000000')::sparsevec
    FROM (
        SELECT dim, max((tf * (k1 + 1) / (tf + k1 * (1 - b + b * dl / avgdl)))::real) AS weight
        FROM (
            SELECT array_agg(:"schema".lexdim(lexeme)) AS dims,
                   array_agg(cardinality(positions)::double precision) AS tfs,
                   coalesce(sum(cardinality(positions)) FILTER (WHERE NOT starts_with(lexeme, '#')), 0)::double precision AS dl
            FROM unnest(tsv)
        ) AS counted, unnest(dims, tfs) AS each(dim, tf)
        GROUP BY dim  -- two lexemes may share a dimension
    ) AS weighed
);

-- Keeps document frequencies true whoever changes chunks: psql, ingestion, a cascade.
CREATE FUNCTION :"schema".count_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %I.lexeme_deltas SELECT tsv, 1 FROM added WHERE canonical', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;
CREATE FUNCTION :"schema".count_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %I.lexeme_deltas SELECT tsv, -1 FROM gone WHERE canonical', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;
-- Only a change of canonical counts: tsv is never changed in place.
CREATE FUNCTION :"schema".count_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'INSERT INTO %I.lexeme_deltas
         SELECT a.tsv, CASE WHEN a.canonical THEN 1 ELSE -1 END
         FROM added a JOIN gone g USING (id) WHERE a.canonical <> g.canonical', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;
CREATE TRIGGER count_inserted AFTER INSERT ON :"schema".chunks
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION :"schema".count_inserted();
CREATE TRIGGER count_deleted AFTER DELETE ON :"schema".chunks
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION :"schema".count_deleted();
CREATE TRIGGER count_updated AFTER UPDATE ON :"schema".chunks
    REFERENCING OLD TABLE AS gone NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION :"schema".count_updated();

-- Lexemes of the sentence, or of the cell of a table, that holds a passage's characters from_start to from_end: of so
-- much of it as stands within 300 characters on either side. A search follows a citation when its sentence is about the
-- question; to read it then took most of the time.
CREATE FUNCTION :"schema".citing_lexemes(config regconfig, passage text, from_start integer, from_end integer)
RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN tsvector_to_array(to_tsvector(config,
    regexp_replace(substr(passage, greatest(from_start - 299, 1), least(from_start, 300)),
                   '^.*([.;:?!]\s|\n\s*\n|\|)', '')
    || substr(passage, from_start + 1, from_end - from_start)
    || regexp_replace(substr(passage, from_end + 1, 300), '([.;?!](\s|$)|\n\s*\n|\n\|).*$', '')));

-- Makes the best live evidence of some claims their leading one. Without any a claim turns stale; a stale one that has
-- evidence again becomes what it was. What a rule has verified rests on what a rule vouches for. Each change is an
-- event. How many claims changed.
CREATE FUNCTION :"schema".claims_settle(ids bigint[], who text, why text) RETURNS bigint
LANGUAGE sql SET search_path = :"schema", pg_temp AS $$
    WITH best AS (
        SELECT c.id, c.status AS stood, e.*
        FROM claims c
        LEFT JOIN LATERAL (
            SELECT e.chunk, e.quote, e.quote_start, e.quote_end, e.passage_hash
            FROM claim_evidence e JOIN chunks k ON k.id = e.chunk
            WHERE e.claim = c.id AND NOT k.retired
              AND (e.vouched OR c.verified_by IS NULL OR c.verified_by NOT LIKE 'rule: %')
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
CREATE FUNCTION :"schema".claims_lose_deleted() RETURNS trigger
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
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
CREATE FUNCTION :"schema".claims_lose_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
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
CREATE TRIGGER claims_lose_deleted AFTER DELETE ON :"schema".chunks
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION :"schema".claims_lose_deleted();
CREATE TRIGGER claims_lose_changed AFTER UPDATE OF text, retired ON :"schema".chunks FOR EACH ROW
    WHEN (OLD.text IS DISTINCT FROM NEW.text OR (NEW.retired AND NOT OLD.retired))
    EXECUTE FUNCTION :"schema".claims_lose_changed();

-- Keeps the document frequencies of verified claims true, whatever turns a claim.
CREATE FUNCTION :"schema".count_claim() RETURNS trigger
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
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
        INSERT INTO claim_lexeme_deltas VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.tsv ELSE NEW.tsv END, sign);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_claim AFTER INSERT OR UPDATE OF status OR DELETE ON :"schema".claims
    FOR EACH ROW EXECUTE FUNCTION :"schema".count_claim();
