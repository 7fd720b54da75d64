-- What a collection's gold questions were worth, night by night. in: collection. uses: evaluations_of
SELECT at, good, metrics, findings
FROM kb.evaluations
WHERE collection = :'collection'::text
ORDER BY at, evaluation_id
