-- Nights and what they measure: runs with their steps, evaluations, recall; what a collection learned from them.
ALTER TABLE kb.collections
    ADD COLUMN IF NOT EXISTS ef_search integer CHECK (ef_search BETWEEN 1 AND 1000),
    ADD COLUMN IF NOT EXISTS tuning jsonb;
-- Citations pay since it is asked which of them are about the question; collections made before stay as they are set.
ALTER TABLE kb.collections ALTER COLUMN expand_cites SET DEFAULT true;

-- Nights: one row a run, written when it starts, so that a run that died is seen. Times are UTC.
CREATE TABLE IF NOT EXISTS kb.runs (
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
CREATE UNIQUE INDEX IF NOT EXISTS runs_due ON kb.runs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_started ON kb.runs (started_at);

CREATE TABLE IF NOT EXISTS kb.run_steps (
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
CREATE TABLE IF NOT EXISTS kb.evaluations (
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
CREATE INDEX IF NOT EXISTS evaluations_of ON kb.evaluations (collection, at);

-- Recorded searches asked again exactly: what share of the nearest passages the HNSW index found.
CREATE TABLE IF NOT EXISTS kb.recall_samples (
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
CREATE INDEX IF NOT EXISTS recall_samples_of ON kb.recall_samples (collection, at);

-- Folders that single files were taken from are told apart from folders that are synced whole.
DO $$
DECLARE
    schema_name text;
BEGIN
    FOR schema_name IN SELECT c.schema_name FROM kb.collections c LOOP
        EXECUTE format('ALTER TABLE %I.roots ADD COLUMN IF NOT EXISTS whole boolean NOT NULL DEFAULT true', schema_name);
    END LOOP;
END
$$;
