"""TASK.md on disk: `files` reads and writes it, `frontmatter` knows the small YAML at its top."""

from lockgate.adapters.task_file.files import TaskFiles, read_task_file, write_task_file
from lockgate.adapters.task_file.frontmatter import (
    parse_frontmatter,
    render_frontmatter,
    split_frontmatter,
)

__all__ = [
    "TaskFiles",
    "parse_frontmatter",
    "read_task_file",
    "render_frontmatter",
    "split_frontmatter",
    "write_task_file",
]
