"""MCP: assistants of people, and agents at work, call Lockgate's services as tools."""
