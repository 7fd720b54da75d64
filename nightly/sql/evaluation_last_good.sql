-- The last good night of a collection. in: collection. out: at, metrics, questions, context
-- uses: evaluations_of
SELECT at, metrics, questions, context
FROM kb.evaluations
WHERE collection = :'collection'::text AND good
ORDER BY at DESC, evaluation_id DESC
LIMIT 1
