-- Edges of a collection, to look at: what cites and uses what, references that lead nowhere, and hubs.
--   kb db psql COLLECTION -f ops/edges.sql
-- makes views that last as long as the session, and shows the beginning of each; with -v rows=100 more of it. To go on
-- asking, start `kb db psql COLLECTION` and say \i ops/edges.sql there.
\if :{?rows}
\else
\set rows 20
\endif

CREATE TEMPORARY VIEW edges AS
SELECT l.relation, f.chunk_id AS from_passage, regexp_replace(l.anchor, '\s+', ' ', 'g') AS anchor, l.target_label,
       t.chunk_id AS to_passage,
       regexp_replace(substr(t.text, l.to_start + 1, least(l.to_end - l.to_start, 60)), '\s+', ' ', 'g') AS begins
FROM links l JOIN chunks f ON f.id = l.from_chunk JOIN chunks t ON t.id = l.to_chunk;

CREATE TEMPORARY VIEW dangling AS
SELECT f.chunk_id AS from_passage, regexp_replace(d.anchor, '\s+', ' ', 'g') AS anchor, d.target_label, d.reason
FROM dangling_links d JOIN chunks f ON f.id = d.from_chunk;

-- What so many edges lead to says little about any of them: searches pass over more than 100.
CREATE TEMPORARY VIEW hubs AS
SELECT l.relation, t.chunk_id AS passage, count(*) AS edges, count(DISTINCT f.source) AS sources
FROM links l JOIN chunks f ON f.id = l.from_chunk JOIN chunks t ON t.id = l.to_chunk
GROUP BY l.relation, t.chunk_id;

\echo edges
SELECT relation, count(*) AS edges, count(DISTINCT from_passage) AS passages, count(DISTINCT to_passage) AS targets
FROM edges GROUP BY relation ORDER BY relation;
SELECT * FROM edges ORDER BY from_passage, relation, target_label, to_passage LIMIT :rows;
\echo dangling references
SELECT reason, count(*) AS refs FROM dangling GROUP BY reason ORDER BY refs DESC, reason LIMIT :rows;
SELECT * FROM dangling ORDER BY from_passage, target_label, anchor LIMIT :rows;
\echo hubs
SELECT * FROM hubs ORDER BY edges DESC, passage, relation LIMIT :rows;
