"""Tasks: load, decide, commit, act; and what people read of them."""
