-- Store the passages of one file: text search vector, BM25 vector and the canonical flag are made here.
-- in: source, config, avg_length ('' before the first load), retired, authority,
--     rows (jsonb array of objects), embeddings (halfvec array by position, NULL where there is none)
-- uses: chunks_canonical
WITH incoming AS MATERIALIZED (
    SELECT r.*, e.embedding,
           to_tsvector(:'config'::regconfig, r.context_words) || to_tsvector(:'config'::regconfig, r.words)
               || r.extras::tsvector AS tsv
    FROM jsonb_to_recordset(:'rows'::jsonb) AS r(
             position integer, chunk_index integer, text text, context text, heading_path text[], label text,
             page_first integer, page_last integer, char_start integer, char_end integer, passage_hash bytea,
             paragraph_hashes bigint[], paragraph_spans integer[], marks jsonb, words text, context_words text, extras text)
    JOIN unnest(:'embeddings'::halfvec[]) WITH ORDINALITY AS e(embedding, position) USING (position)
),
-- Early in the first load there is no mean length: that of these rows stands in until all rows are restated.
mean AS (
    SELECT coalesce(nullif(:'avg_length'::text, '')::double precision,
                    (SELECT nullif(avg(length_lexemes(tsv)), 0) FROM incoming), 1) AS length
)
INSERT INTO chunks
    (source, chunk_index, text, context, heading_path, label, page_first, page_last, char_start, char_end,
     passage_hash, paragraph_hashes, paragraph_spans, marks, canonical, authority, retired, tsv, bm25, embedding)
SELECT :'source'::text, chunk_index, text, context, heading_path, label, page_first, page_last, char_start, char_end,
       passage_hash, paragraph_hashes, paragraph_spans, marks,
       NOT :'retired'::boolean
           AND row_number() OVER (PARTITION BY passage_hash ORDER BY chunk_index) = 1
           AND NOT EXISTS (SELECT FROM chunks c WHERE c.passage_hash = i.passage_hash AND c.canonical),
       :'authority'::real, :'retired'::boolean, tsv, bm25_doc(tsv, mean.length), embedding
FROM incoming i, mean
ORDER BY chunk_index
