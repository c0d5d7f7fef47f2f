"""What the keys of the board do."""
