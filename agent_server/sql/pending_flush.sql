-- Move what ingestion appended to the text indexes into their trees, so that no search has to read through it.
-- uses: chunks_tsv, chunks_paragraphs (one that is missing is passed over)
SELECT gin_clean_pending_list(to_regclass('chunks_tsv')), gin_clean_pending_list(to_regclass('chunks_paragraphs'))
