"""GitHub: REST for facts, GraphQL only for what REST lacks."""
