-- A citation knows what the sentence says that it stands in; those of before are read again, as their rules are older.
DO $$
DECLARE
    schema_name text;
BEGIN
    FOR schema_name IN SELECT c.schema_name FROM kb.collections c LOOP
        EXECUTE format('ALTER TABLE %I.links ADD COLUMN IF NOT EXISTS said text[] COLLATE "C" NOT NULL DEFAULT ''{}''',
                       schema_name);
        EXECUTE format($function$
        CREATE OR REPLACE FUNCTION %I.citing_lexemes(config regconfig, passage text, from_start integer, from_end integer)
        RETURNS text[]
        LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
        RETURN tsvector_to_array(to_tsvector(config,
            regexp_replace(substr(passage, greatest(from_start - 299, 1), least(from_start, 300)),
                           '^.*([.;:?!]\s|\n\s*\n|\|)', '')
            || substr(passage, from_start + 1, from_end - from_start)
            || regexp_replace(substr(passage, from_end + 1, 300), '([.;?!](\s|$)|\n\s*\n|\n\|).*$', '')))
        $function$, schema_name);
    END LOOP;
END
$$;
