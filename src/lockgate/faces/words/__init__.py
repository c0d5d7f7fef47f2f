"""The words that every face uses."""
