-- Views over all collections, for psql and for what draws plots from it; the figures of `kb stats` and of the nights.
--
--     kb db psql -f ops/views.sql -c 'SELECT * FROM growth'
--
-- They are temporary: they last as long as the session, know the collections that there are now, and keep none of them
-- from being dropped. Times are UTC.
--
-- collections     one row each: model, files, passages, room
-- growth          files and passages taken in, by collection and day
-- file_statuses   files and passages by collection and status
-- nights          the steps of every run with outcome, seconds and counts
-- recall          what the recall audit measured, over time
-- evaluations     what the gold sets were worth, over time
-- slow_searches   recorded searches, the slowest first
\set ON_ERROR_STOP on
SET timezone = 'UTC';
SET client_min_messages = warning;

SELECT 'CREATE OR REPLACE TEMP VIEW file_statuses AS '
    || 'SELECT NULL::text AS collection, NULL::text AS status, 0::bigint AS files, 0::bigint AS passages WHERE false'
    || coalesce(string_agg(format(
           ' UNION ALL SELECT %L, status, count(*), sum(chunk_count)::bigint FROM %I.files GROUP BY status',
           name, schema_name), '' ORDER BY name), '')
FROM kb.collections \gexec

SELECT 'CREATE OR REPLACE TEMP VIEW growth AS '
    || 'SELECT NULL::text AS collection, NULL::date AS day, 0::bigint AS files, 0::bigint AS passages WHERE false'
    || coalesce(string_agg(format(
           ' UNION ALL SELECT %L, (indexed_at AT TIME ZONE ''UTC'')::date AS day, count(*), sum(chunk_count)::bigint'
           ' FROM %I.files WHERE status IN (''indexed'', ''partial'') GROUP BY day',
           name, schema_name), '' ORDER BY name), '')
    || ' ORDER BY 1, 2'
FROM kb.collections \gexec

SELECT 'CREATE OR REPLACE TEMP VIEW collections AS '
    || 'SELECT c.name AS collection, c.model, c.dimensions, c.fusion, c.ef_search, s.* FROM kb.collections c JOIN ('
    || 'SELECT NULL::text AS of, 0::bigint AS files, 0::bigint AS passages, 0::bigint AS searched, 0::bigint AS bytes,'
    || ' 0::bigint AS searches, NULL::timestamptz AS last_search WHERE false'
    || coalesce(string_agg(format(
           ' UNION ALL SELECT %1$L, (SELECT count(*) FROM %2$I.files WHERE status <> ''removed''), count(*),'
           ' count(*) FILTER (WHERE canonical), pg_total_relation_size(''%2$I.chunks''),'
           ' (SELECT count(*) FROM %2$I.searches), (SELECT max(at) FROM %2$I.searches) FROM %2$I.chunks',
           name, schema_name), '' ORDER BY name), '')
    || ') AS s ON s.of = c.name ORDER BY c.name'
FROM kb.collections \gexec

SELECT 'CREATE OR REPLACE TEMP VIEW slow_searches AS '
    || 'SELECT NULL::text AS collection, NULL::timestamptz AS at, NULL::text AS query, NULL::double precision AS total_ms,'
    || ' NULL::double precision AS sql_ms, NULL::double precision AS embed_ms, NULL::integer AS passages,'
    || ' NULL::uuid AS trace_id WHERE false'
    || coalesce(string_agg(format(
           ' UNION ALL SELECT %L, at, query, (timings_ms ->> ''total'')::double precision,'
           ' (timings_ms ->> ''sql'')::double precision, (timings_ms ->> ''embed'')::double precision,'
           ' jsonb_array_length(passages), trace_id FROM %I.searches',
           name, schema_name), '' ORDER BY name), '')
    || ' ORDER BY total_ms DESC NULLS LAST'
FROM kb.collections \gexec

CREATE OR REPLACE TEMP VIEW nights AS
SELECT r.run_id, r.due_at, r.started_at, r.outcome AS run, s.step, s.job, s.collection, s.outcome,
       round(extract(epoch FROM s.ended_at - s.started_at)::numeric, 1) AS seconds, s.counts, s.error
FROM kb.runs r LEFT JOIN kb.run_steps s USING (run_id)
ORDER BY r.run_id DESC, s.step;

CREATE OR REPLACE TEMP VIEW recall AS
SELECT collection, at, filtered, k, searches, ef_search, round(recall::numeric, 4) AS recall, index_ms, exact_ms
FROM kb.recall_samples
ORDER BY collection, at;

CREATE OR REPLACE TEMP VIEW evaluations AS
SELECT collection, at, good, metrics, jsonb_array_length(findings) AS findings
FROM kb.evaluations
ORDER BY collection, at;
