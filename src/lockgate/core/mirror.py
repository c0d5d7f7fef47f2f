"""The frontmatter of TASK.md: the row's machine fields, as people and agents read them."""

from lockgate.core.model import Task

RESERVED = ("Handoff", "Review", "Questions")


def frontmatter(task: Task) -> dict[str, str | int]:
    return {
        "id": task.id,
        "summary": task.summary,
        "branch": task.branch,
        "status": task.status.value,
        "iteration": task.iteration,
        "review_round": task.review_round,
        "crash_count": task.crash_count,
    }
