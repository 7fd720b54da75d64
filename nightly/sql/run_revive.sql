-- The holder of the lock says that its run goes on: between its row and its lock another run may have buried it.
-- in: run_id
UPDATE kb.runs SET outcome = 'running', summary = '' WHERE run_id = :'run_id'::bigint AND outcome = 'died'
