-- Whether a passage is among those that hold a lexeme. in: tsquery, id. uses: chunks_tsv (GIN)
-- Materialised: by the passage's id it would be found without the index that is asked about.
WITH holding AS MATERIALIZED (SELECT id FROM chunks WHERE canonical AND tsv @@ :'tsquery'::tsquery)
SELECT :'id'::bigint IN (SELECT id FROM holding) AS found
