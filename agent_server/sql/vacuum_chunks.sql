-- Give the room of dead passages back, take them out of the dense index, and let the planner know. Outside a transaction.
VACUUM (ANALYZE) chunks
