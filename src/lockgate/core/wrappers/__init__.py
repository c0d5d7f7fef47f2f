"""What a gate's command really runs, and which of it a change edits."""
