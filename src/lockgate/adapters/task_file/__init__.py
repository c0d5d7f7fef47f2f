"""TASK.md on disk: `files` reads and writes it, `little_yaml` reads the fields at its top."""

from lockgate.adapters.task_file.files import (
    TaskFiles,
    parse_frontmatter,
    read_task_file,
    render_frontmatter,
    split_frontmatter,
    write_task_file,
)

__all__ = [
    "TaskFiles",
    "parse_frontmatter",
    "read_task_file",
    "render_frontmatter",
    "split_frontmatter",
    "write_task_file",
]
