-- Record a run before it does anything. An hour of the schedule that has its row already gets no second one.
-- in: due_at (NULL: by hand), started_at, host, pid, settings (jsonb). out: run_id, or no row. uses: runs_due
INSERT INTO kb.runs (due_at, started_at, host, pid, settings)
VALUES (:'due_at'::timestamptz, :'started_at'::timestamptz, :'host'::text, :'pid'::integer, :'settings'::jsonb)
ON CONFLICT (due_at) WHERE due_at IS NOT NULL DO NOTHING
RETURNING run_id
