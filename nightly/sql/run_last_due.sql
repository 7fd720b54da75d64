-- The newest hour of the schedule that has a record. out: due_at (NULL: none). uses: runs_due
SELECT max(due_at) AS due_at FROM kb.runs WHERE due_at IS NOT NULL
