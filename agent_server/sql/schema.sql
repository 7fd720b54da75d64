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
    expand_cites       boolean NOT NULL DEFAULT false,
    expand_defines     boolean NOT NULL DEFAULT true,
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
