"""Reading and writing text: Markdown, TASK.md, feedback, paths."""
