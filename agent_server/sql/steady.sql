-- The beginning of a search's transaction: all its statements see one state of the passages, whatever is ingested
-- meanwhile. The lock comes before that state is chosen: a re-embedding has switched the vectors before it, or waits.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
LOCK TABLE chunks IN ACCESS SHARE MODE
