-- Touch what a search reads, as its reader role: an error names what it may not.
SELECT (SELECT id FROM chunks LIMIT 1) AS passage, (SELECT ndoc FROM lexemes LIMIT 1) AS ndoc,
       (SELECT source FROM files LIMIT 1) AS source, (SELECT id FROM links LIMIT 1) AS link,
       (SELECT id FROM terms LIMIT 1) AS term, (SELECT id FROM claims LIMIT 1) AS claim
