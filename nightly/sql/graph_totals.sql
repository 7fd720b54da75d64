-- What the graph of a collection holds. out: cites, defines, dangling, terms (by key), passages
SELECT (SELECT count(*) FROM links WHERE relation = 'cites') AS cites,
       (SELECT count(*) FROM links WHERE relation = 'defines') AS defines,
       (SELECT count(*) FROM dangling_links) AS dangling,
       (SELECT count(DISTINCT folded) FROM terms) AS terms,
       (SELECT count(*) FROM chunks) AS passages
