-- Edges between passages, in every collection made before: the tables that sql/collection.sql gives to a new one.
DO $migrate$
DECLARE
    c record;
BEGIN
    FOR c IN SELECT schema_name, reader_role FROM kb.collections ORDER BY name LOOP
        -- Filled when its files are read again, as they are at the next ingestion.
        EXECUTE format('ALTER TABLE %1$I.chunks ADD COLUMN marks jsonb NOT NULL DEFAULT ''[]''', c.schema_name);
        EXECUTE format($tables$
        -- Edges between passages, each with the words it was read from. Offsets are characters of the chunks' own text.
        -- Passages that are replaced or removed take their edges along, in both directions.
        CREATE TABLE %1$I.links (
            id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            from_chunk   bigint NOT NULL REFERENCES %1$I.chunks ON DELETE CASCADE,
            to_chunk     bigint NOT NULL REFERENCES %1$I.chunks ON DELETE CASCADE,
            relation     text NOT NULL CHECK (relation IN ('cites', 'defines')),
            anchor       text NOT NULL,                    -- the words that say so, verbatim
            from_start   integer NOT NULL,
            from_end     integer NOT NULL,
            to_start     integer NOT NULL,                 -- where the cited paragraph, or the definition, stands
            to_end       integer NOT NULL,
            target_label text NOT NULL,                    -- what was named: "§ 12.4(a)(1)", "Article 6", "PEP 8"
            CHECK (from_start < from_end AND to_start <= to_end)
        );
        -- What a passage leads to. Unique: the same words lead to the same place once.
        CREATE UNIQUE INDEX links_from ON %1$I.links (from_chunk, relation, from_start, from_end, to_chunk, to_start);
        -- What leads to a passage: hubs, and the edges that go with it.
        CREATE INDEX links_to ON %1$I.links (to_chunk, relation);

        -- References whose target was not found, and why.
        CREATE TABLE %1$I.dangling_links (
            id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            from_chunk   bigint NOT NULL REFERENCES %1$I.chunks ON DELETE CASCADE,
            anchor       text NOT NULL,
            from_start   integer NOT NULL,
            from_end     integer NOT NULL,
            target_label text NOT NULL,
            reason       text NOT NULL,
            CHECK (from_start < from_end)
        );
        CREATE INDEX dangling_links_from ON %1$I.dangling_links (from_chunk);

        -- Defined terms and the words that define them.
        CREATE TABLE %1$I.terms (
            id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            term       text NOT NULL,                      -- as it is written where it is defined
            folded     text COLLATE "C" NOT NULL,          -- as it is looked up
            chunk      bigint NOT NULL REFERENCES %1$I.chunks ON DELETE CASCADE,
            form       text NOT NULL,                      -- how it is defined: "means", "glossary", ...
            scope      text NOT NULL,                      -- where the definition holds: "section", "part", "document", ...
            from_start integer NOT NULL,
            from_end   integer NOT NULL,
            CHECK (from_start < from_end)
        );
        CREATE INDEX terms_folded ON %1$I.terms (folded);
        CREATE INDEX terms_chunk ON %1$I.terms (chunk);

        -- The state of passages that each source's edges were made from: what still holds is not done again.
        CREATE TABLE %1$I.edge_sources (
            source            text COLLATE "C" PRIMARY KEY REFERENCES %1$I.files ON UPDATE CASCADE ON DELETE CASCADE,
            citations_version text NOT NULL DEFAULT '',    -- rules, name and first passage; '' when it must be done again
            defines_version   text NOT NULL DEFAULT '',
            names             text[] NOT NULL DEFAULT '{}', -- keys that other sources may cite it or its parts by
            wants             text[] NOT NULL DEFAULT '{}'  -- keys that its own references look for in other sources
        );
        -- Finds the sources whose references may lead elsewhere when a source comes, changes or goes.
        CREATE INDEX edge_sources_wants ON %1$I.edge_sources USING gin (wants);
        CREATE INDEX edge_sources_names ON %1$I.edge_sources USING gin (names);
        $tables$, c.schema_name);
        -- A database that was moved to another server may lack its roles until `kb db roles` makes them, with grants.
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = c.reader_role) THEN
            EXECUTE format('GRANT SELECT ON %1$I.links, %1$I.dangling_links, %1$I.terms TO %2$I',
                           c.schema_name, c.reader_role);
        END IF;
    END LOOP;
END $migrate$;
