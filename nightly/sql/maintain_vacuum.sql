-- Give the room of dead rows back and let the planner know. Outside a transaction. in: "table"
VACUUM (ANALYZE) :"table"
