-- Everything of one collection, in one schema: dropping, dumping, moving or granting it is one statement.
-- in: schema (identifier), dimensions (integer)
-- The shared part stands in schema.sql, what a search may read in reader_grants.sql.

CREATE SCHEMA :"schema";

-- A folder that was ingested; only files under it can be found missing at its next sync.
CREATE TABLE :"schema".roots (
    root text COLLATE "C" PRIMARY KEY,
    path text NOT NULL UNIQUE                      -- absolute; sources never are
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
-- Changes not yet in lexemes: appended in each file's transaction, merged after each run, so that files do not
-- queue up behind the rows of common words.
CREATE TABLE :"schema".lexeme_deltas (
    lexeme text COLLATE "C" NOT NULL,
    d      bigint NOT NULL
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
    passages   jsonb NOT NULL,                     -- chunk_id, score and ranks, in order
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
    SELECT coalesce('{' || string_agg(dim || ':' || weight, ',' ORDER BY dim) || '}/1000000000', '{}/1000000000')::sparsevec
    FROM (
        SELECT :"schema".lexdim(lexeme) AS dim,
               max((tf * (k1 + 1) / (tf + k1 * (1 - b + b * dl / avgdl)))::real) AS weight
        FROM (
            SELECT lexeme, cardinality(positions)::double precision AS tf,
                   coalesce(sum(cardinality(positions)) FILTER (WHERE lexeme NOT LIKE '#%') OVER (), 0)::double precision AS dl
            FROM unnest(tsv)
        ) AS counted
        GROUP BY 1
    ) AS weighed
);

-- Keeps document frequencies true whoever changes chunks: psql, ingestion, a cascade.
CREATE FUNCTION :"schema".count_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'INSERT INTO %I.lexeme_deltas
         SELECT t.lexeme, count(*) FROM added c, unnest(c.tsv) t WHERE c.canonical GROUP BY 1
         UNION ALL SELECT '''', count(*) FROM added WHERE canonical HAVING count(*) > 0', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;
CREATE FUNCTION :"schema".count_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'INSERT INTO %I.lexeme_deltas
         SELECT t.lexeme, -count(*) FROM gone c, unnest(c.tsv) t WHERE c.canonical GROUP BY 1
         UNION ALL SELECT '''', -count(*) FROM gone WHERE canonical HAVING count(*) > 0', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;
-- Only a change of canonical counts: tsv is never changed in place.
CREATE FUNCTION :"schema".count_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'WITH turned AS (
            SELECT a.tsv, CASE WHEN a.canonical THEN 1 ELSE -1 END AS sign
            FROM added a JOIN gone g USING (id) WHERE a.canonical <> g.canonical)
         INSERT INTO %I.lexeme_deltas
         SELECT t.lexeme, sum(c.sign) FROM turned c, unnest(c.tsv) t GROUP BY 1
         UNION ALL SELECT '''', sum(sign) FROM turned HAVING count(*) > 0', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;
CREATE TRIGGER count_inserted AFTER INSERT ON :"schema".chunks
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION :"schema".count_inserted();
CREATE TRIGGER count_deleted AFTER DELETE ON :"schema".chunks
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION :"schema".count_deleted();
CREATE TRIGGER count_updated AFTER UPDATE ON :"schema".chunks
    REFERENCING OLD TABLE AS gone NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION :"schema".count_updated();
