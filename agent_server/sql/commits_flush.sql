-- When this transaction has been committed, so have all before it, on disk: those of files do not wait for it one by
-- one. A transaction that wrote nothing would not wait either, so this writes a word into the log.
SELECT pg_logical_emit_message(true, 'knowledge_bank', 'flush')
