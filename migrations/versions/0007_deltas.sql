-- Pending changes of document frequencies are whole text search vectors: a passage appends one row instead of one for
-- each of its lexemes. What was pending is merged before. bm25_doc makes the same vectors in less time.
DO $migrate$
DECLARE
    c record;
BEGIN
    FOR c IN SELECT schema_name FROM kb.collections ORDER BY name LOOP
        -- Tables that are new already stay: what is pending in them is in their form.
        IF EXISTS (SELECT FROM pg_attribute
                   WHERE attrelid = format('%I.lexeme_deltas', c.schema_name)::regclass AND attname = 'lexeme') THEN
            EXECUTE format($deltas$
INSERT INTO %1$I.lexemes
SELECT lexeme, sum(d) FROM %1$I.lexeme_deltas GROUP BY lexeme HAVING sum(d) <> 0
ON CONFLICT (lexeme) DO UPDATE SET ndoc = lexemes.ndoc + excluded.ndoc;
DROP TABLE %1$I.lexeme_deltas;
CREATE TABLE %1$I.lexeme_deltas (
    tsv tsvector NOT NULL,
    d   integer NOT NULL
);
ALTER TABLE %1$I.lexeme_deltas ALTER COLUMN tsv SET STORAGE EXTERNAL;
            $deltas$, c.schema_name);
        END IF;
        IF EXISTS (SELECT FROM pg_attribute
                   WHERE attrelid = format('%I.claim_lexeme_deltas', c.schema_name)::regclass
                     AND attname = 'lexeme') THEN
            EXECUTE format($deltas$
INSERT INTO %1$I.claim_lexemes
SELECT lexeme, sum(d) FROM %1$I.claim_lexeme_deltas GROUP BY lexeme HAVING sum(d) <> 0
ON CONFLICT (lexeme) DO UPDATE SET ndoc = claim_lexemes.ndoc + excluded.ndoc;
DROP TABLE %1$I.claim_lexeme_deltas;
CREATE TABLE %1$I.claim_lexeme_deltas (
    tsv tsvector NOT NULL,
    d   integer NOT NULL
);
            $deltas$, c.schema_name);
        END IF;
        EXECUTE format($functions$
CREATE OR REPLACE FUNCTION %1$I.bm25_doc(tsv tsvector, avgdl double precision,
                                   k1 double precision DEFAULT 1.2, b double precision DEFAULT 0.75)
RETURNS sparsevec
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (
    SELECT coalesce('{' || string_agg(concat(dim, ':', weight), ',') || '}/1000000000', '{}/1000000000')::sparsevec
    FROM (
        SELECT dim, max((tf * (k1 + 1) / (tf + k1 * (1 - b + b * dl / avgdl)))::real) AS weight
        FROM (
            SELECT array_agg(%1$I.lexdim(lexeme)) AS dims,
                   array_agg(cardinality(positions)::double precision) AS tfs,
                   coalesce(sum(cardinality(positions)) FILTER (WHERE NOT starts_with(lexeme, '#')), 0)::double precision AS dl
            FROM unnest(tsv)
        ) AS counted, unnest(dims, tfs) AS each(dim, tf)
        GROUP BY dim  -- two lexemes may share a dimension
    ) AS weighed
);

CREATE OR REPLACE FUNCTION %1$I.count_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %%I.lexeme_deltas SELECT tsv, 1 FROM added WHERE canonical', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION %1$I.count_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('INSERT INTO %%I.lexeme_deltas SELECT tsv, -1 FROM gone WHERE canonical', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;
-- Only a change of canonical counts: tsv is never changed in place.
CREATE OR REPLACE FUNCTION %1$I.count_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'INSERT INTO %%I.lexeme_deltas
         SELECT a.tsv, CASE WHEN a.canonical THEN 1 ELSE -1 END
         FROM added a JOIN gone g USING (id) WHERE a.canonical <> g.canonical', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION %1$I.count_claim() RETURNS trigger
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
        INSERT INTO claim_lexeme_deltas VALUES (CASE TG_OP WHEN 'DELETE' THEN OLD.tsv ELSE NEW.tsv END, sign);
    END IF;
    RETURN NULL;
END $$;
        $functions$, c.schema_name);
    END LOOP;
END $migrate$;
