-- A second index of lexical candidates beside the standing one, as collection.sql makes it.
CREATE INDEX CONCURRENTLY chunks_tsv_new ON chunks USING gin (tsv) WITH (gin_pending_list_limit = 1024) WHERE canonical
