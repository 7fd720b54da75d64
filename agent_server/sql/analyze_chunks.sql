-- Let the planner know the passages as they are now.
ANALYZE chunks
