-- What a reader role may see: its own schema, and there what a search reads.
-- in: schema, reader, database (identifiers)
GRANT CONNECT ON DATABASE :"database" TO :"reader";
GRANT USAGE ON SCHEMA :"schema" TO :"reader";
GRANT SELECT ON :"schema".chunks, :"schema".files, :"schema".lexemes TO :"reader";
GRANT SELECT ON :"schema".links, :"schema".dangling_links, :"schema".terms TO :"reader";
GRANT SELECT ON :"schema".claims, :"schema".claim_evidence, :"schema".claim_conflicts, :"schema".claim_lexemes TO :"reader";
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA :"schema" TO :"reader"
