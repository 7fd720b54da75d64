-- What avg_length would be now: mean length of the canonical passages in word lexemes.
SELECT avg(length_lexemes(tsv)) AS avg_length, count(*) AS passages FROM chunks WHERE canonical
