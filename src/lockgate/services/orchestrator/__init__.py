"""The loop that turns the wheel where nobody else does."""
