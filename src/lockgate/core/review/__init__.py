"""Reviews: what a reviewer hands in, and how several are joined."""
