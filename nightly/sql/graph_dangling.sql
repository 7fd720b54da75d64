-- References of a passage that lead nowhere. in: chunk (id), limit. uses: dangling_links_from
SELECT anchor, target_label, reason FROM dangling_links WHERE from_chunk = :'chunk'::bigint
ORDER BY from_start, id
LIMIT :'limit'::integer
