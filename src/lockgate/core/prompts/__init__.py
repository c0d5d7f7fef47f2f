"""What agents are told."""
