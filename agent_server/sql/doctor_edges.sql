-- Edges and defined terms that no longer fit their passages. Edges to retired passages are no fault: they wait, and
-- searches do not follow them.
-- out: edges, retired (lead to a retired passage), gone (an end is not there), misread (the words that say so do not
--      stand where they were read)
SELECT count(*) AS edges,
       count(*) FILTER (WHERE t.retired) AS retired,
       count(*) FILTER (WHERE f.id IS NULL OR t.id IS NULL)
           + (SELECT count(*) FROM terms d WHERE NOT EXISTS (SELECT FROM chunks c WHERE c.id = d.chunk)) AS gone,
       count(*) FILTER (WHERE l.from_end > length(f.text) OR l.to_end > length(t.text)
                           OR substring(f.text FROM l.from_start + 1 FOR l.from_end - l.from_start) <> l.anchor) AS misread
FROM links l LEFT JOIN chunks f ON f.id = l.from_chunk LEFT JOIN chunks t ON t.id = l.to_chunk
