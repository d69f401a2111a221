"""Tools over one text, as plain functions that any agent framework takes and that the MCP server offers too."""
