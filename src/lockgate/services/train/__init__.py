"""The merge train at work on real repositories."""
