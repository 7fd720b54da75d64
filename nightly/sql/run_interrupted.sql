-- A run was stopped by hand, with the step it was at. in: run_id, at
WITH steps AS (
    UPDATE kb.run_steps SET outcome = 'died', ended_at = :'at'::timestamptz
    WHERE run_id = :'run_id'::bigint AND outcome = 'running'
)
UPDATE kb.runs SET outcome = 'died', ended_at = :'at'::timestamptz, summary = 'interrupted'
WHERE run_id = :'run_id'::bigint
