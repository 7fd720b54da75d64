-- Only the last good night is compared with: older ones need no list of files, which may be long.
-- in: collection. uses: evaluations_of
UPDATE kb.evaluations SET context = context #- '{files,each}'
WHERE collection = :'collection'::text AND context #> '{files,each}' IS NOT NULL
  AND evaluation_id <> (SELECT evaluation_id FROM kb.evaluations
                        WHERE collection = :'collection'::text AND good
                        ORDER BY at DESC, evaluation_id DESC LIMIT 1)
