-- The shared schema as it stands after all migrations; a test proves the two equal.
-- What belongs to one collection stands in collection.sql: one schema each.

CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA kb;

-- One row per collection: where it lives, how its text is read, which model its vectors come from, how it is ranked.
CREATE TABLE kb.collections (
    name               text PRIMARY KEY CHECK (name ~ '^[A-Za-z][A-Za-z0-9_-]{0,39}$'),
    schema_name        text NOT NULL UNIQUE,
    reader_role        text NOT NULL UNIQUE,      -- LOGIN role that searches connect as; sees this schema alone
    description        text NOT NULL DEFAULT '',
    text_search_config text NOT NULL DEFAULT 'english',
    lexical_ranker     text NOT NULL DEFAULT 'bm25' CHECK (lexical_ranker IN ('bm25', 'ts_rank_cd')),
    -- The embedding contract: vectors of another model, digest, width or prefix are never mixed in.
    embedder           text NOT NULL CHECK (embedder IN ('ollama', 'local')),
    model              text NOT NULL,
    model_digest       text NOT NULL,
    dimensions         integer NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),  -- HNSW's limit for halfvec
    context_tokens     integer NOT NULL,
    query_prefix       text NOT NULL DEFAULT '',
    passage_prefix     text NOT NULL DEFAULT '',
    chunk_size         integer NOT NULL DEFAULT 800 CHECK (chunk_size BETWEEN 100 AND 8000),
    chunk_overlap      integer NOT NULL DEFAULT 100 CHECK (chunk_overlap >= 0),
    -- Mean chunk length in word lexemes that the stored bm25 vectors were made with; NULL before the first load.
    avg_length         double precision CHECK (avg_length > 0),
    fusion             text NOT NULL DEFAULT 'rrf' CHECK (fusion IN ('rrf', 'score', 'dense', 'lexical')),
    fusion_weight      double precision NOT NULL DEFAULT 0.5 CHECK (fusion_weight BETWEEN 0 AND 1),
    -- At most 0.1: with k = 60 a larger bonus could lift a passage outside both arms' first 10 over one in both
    -- arms' first 3.
    authority_weight   double precision NOT NULL DEFAULT 0.08 CHECK (authority_weight BETWEEN 0 AND 0.1),
    refusal_threshold  double precision,           -- NULL until calibrated
    -- Edges that searches follow: what a hit cites, what defines a term that is asked for.
    expand_cites       boolean NOT NULL DEFAULT true,
    expand_defines     boolean NOT NULL DEFAULT true,
    -- Candidates that a walk through the HNSW graph keeps; NULL: twice those asked for. Raised by the recall audit.
    ef_search          integer CHECK (ef_search BETWEEN 1 AND 1000),
    -- What `kb tune` measured when it chose fusion and fusion_weight; NULL where nobody tuned.
    tuning             jsonb,
    created_at         timestamptz NOT NULL DEFAULT now(),
    CHECK (chunk_overlap < chunk_size)
);
-- Prevents FINANCE beside finance: their schemas would be one.
CREATE UNIQUE INDEX collections_name_ignoring_case ON kb.collections (lower(name));

-- Vectors by content, written batch by batch while a file is embedded: a crash repeats one batch, and text that
-- was embedded once by a model is never paid for again, whichever collection asks.
CREATE TABLE kb.vector_cache (
    content_hash bytea PRIMARY KEY,                -- sha256 of model digest, prefix and text
    embedding    halfvec NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now()
);

-- Nights: one row a run, written when it starts, so that a run that died is seen. Times are UTC.
CREATE TABLE kb.runs (
    run_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    due_at      timestamptz,                       -- the hour of the schedule that it stands for; NULL: by hand
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    -- 'running' without a holder of the lock is a run that died; the next run turns it into 'died'.
    outcome     text NOT NULL DEFAULT 'running'
                CHECK (outcome IN ('running', 'ok', 'failed', 'died', 'skipped')),
    host        text NOT NULL DEFAULT '',
    pid         integer,
    settings    jsonb NOT NULL DEFAULT '{}',       -- jobs, collections, options that were asked for
    summary     text NOT NULL DEFAULT ''
);
-- One night, one record: a second run for the same hour is refused by the database itself.
CREATE UNIQUE INDEX runs_due ON kb.runs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX runs_started ON kb.runs (started_at);

CREATE TABLE kb.run_steps (
    run_id      bigint NOT NULL REFERENCES kb.runs ON DELETE CASCADE,
    step        integer NOT NULL,                  -- order within the run, from 1
    job         text NOT NULL,
    collection  text NOT NULL DEFAULT '',          -- no foreign key: the record outlives the collection
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz,
    outcome     text NOT NULL DEFAULT 'running'
                CHECK (outcome IN ('running', 'ok', 'failed', 'died', 'skipped')),
    counts      jsonb NOT NULL DEFAULT '{}',
    findings    jsonb NOT NULL DEFAULT '[]',       -- what a person should look at, a line each
    error       text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, step)
);

-- Gold sets asked at night: what the search was worth, and all that could have changed it.
CREATE TABLE kb.evaluations (
    evaluation_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id        bigint REFERENCES kb.runs ON DELETE SET NULL,
    collection    text NOT NULL,
    at            timestamptz NOT NULL,
    good          boolean NOT NULL,                -- no significant drop against the good night before
    metrics       jsonb NOT NULL,                  -- means: over all questions, and by kind
    questions     jsonb NOT NULL,                  -- question id -> its metrics, for the paired test of the next night
    context       jsonb NOT NULL,                  -- files, model digest, settings, code: what may explain a change
    findings      jsonb NOT NULL DEFAULT '[]'      -- kinds and questions that fell, and what changed since
);
CREATE INDEX evaluations_of ON kb.evaluations (collection, at);

-- Recorded searches asked again exactly: what share of the nearest passages the HNSW index found.
CREATE TABLE kb.recall_samples (
    sample_id   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id      bigint REFERENCES kb.runs ON DELETE SET NULL,
    collection  text NOT NULL,
    at          timestamptz NOT NULL,
    filtered    boolean NOT NULL,                  -- searches with a filter are counted apart
    searches    integer NOT NULL CHECK (searches > 0),
    k           integer NOT NULL,
    ef_search   integer NOT NULL,                  -- in force when this was measured
    recall      double precision NOT NULL CHECK (recall BETWEEN 0 AND 1),
    index_ms    double precision NOT NULL,         -- medians
    exact_ms    double precision NOT NULL
);
CREATE INDEX recall_samples_of ON kb.recall_samples (collection, at);
