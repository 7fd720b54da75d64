-- A second index of paragraphs beside the standing one, as collection.sql makes it.
CREATE INDEX CONCURRENTLY chunks_paragraphs_new ON chunks USING gin (paragraph_hashes) WITH (gin_pending_list_limit = 1024)
WHERE NOT retired
