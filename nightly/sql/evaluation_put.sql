-- Keep what the gold questions of a night were worth. in: as the columns are named; run_id may be NULL
INSERT INTO kb.evaluations (run_id, collection, at, good, metrics, questions, context, findings)
VALUES (:'run_id'::bigint, :'collection'::text, :'at'::timestamptz, :'good'::boolean, :'metrics'::jsonb,
        :'questions'::jsonb, :'context'::jsonb, :'findings'::jsonb)
