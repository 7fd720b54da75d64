-- Record an hour of the schedule at which nothing ran, and why. in: due_at, at, host, pid, summary
INSERT INTO kb.runs (due_at, started_at, ended_at, outcome, host, pid, summary)
VALUES (:'due_at'::timestamptz, :'at'::timestamptz, :'at'::timestamptz, 'skipped', :'host'::text, :'pid'::integer,
        :'summary'::text)
ON CONFLICT (due_at) WHERE due_at IS NOT NULL DO NOTHING
