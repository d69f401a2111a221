"""Tools for agents over one text: plain functions for any agent framework, which the MCP server offers too."""
