"""Commands that make something happen: tasks, runs, gates, the queue, the orchestrator."""
