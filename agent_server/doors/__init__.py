"""The ways in: command line and MCP. Each turns a request into one call of a lower room, and the answer into text."""
