"""The values that everything else speaks of: tasks, gates, results, findings, events."""
