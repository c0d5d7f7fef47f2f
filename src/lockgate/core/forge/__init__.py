"""Pull requests and issues: what was observed of them, and what follows from that."""
