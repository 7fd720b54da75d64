-- Away with the edges and terms that doctor_edges.sql counts; the sources that they were read from are read again.
WITH bad AS (
    DELETE FROM links l
    USING links b LEFT JOIN chunks f ON f.id = b.from_chunk LEFT JOIN chunks t ON t.id = b.to_chunk
    WHERE l.id = b.id
      AND (f.id IS NULL OR t.id IS NULL OR b.from_end > length(f.text) OR b.to_end > length(t.text)
           OR substring(f.text FROM b.from_start + 1 FOR b.from_end - b.from_start) <> b.anchor)
    RETURNING f.source AS from_source, t.source AS to_source
),
lost AS (DELETE FROM terms d WHERE NOT EXISTS (SELECT FROM chunks c WHERE c.id = d.chunk))
UPDATE edge_sources e SET citations_version = '', defines_version = ''
FROM bad WHERE e.source IN (bad.from_source, bad.to_source)
