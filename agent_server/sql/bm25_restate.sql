-- Make all bm25 vectors again with another mean length. in: avg_length
UPDATE chunks SET bm25 = bm25_doc(tsv, :'avg_length'::double precision)
