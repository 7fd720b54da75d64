"""Jobs that run at night over all collections; may import agent_server, never the reverse."""
