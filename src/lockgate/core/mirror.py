"""The frontmatter of TASK.md: the row's machine fields, as people and agents read them."""

from dataclasses import replace

from lockgate.core.model import Role, Task

RESERVED = ("Handoff", "Review", "Questions")


def frontmatter(task: Task) -> dict[str, str | int]:
    """The goal is a field of its own only where an agent has rewritten the summary."""
    return {
        "id": task.id,
        "summary": task.summary,
        **({"goal": task.goal} if task.goal != task.summary else {}),
        "branch": task.branch,
        "status": task.status.value,
        "iteration": task.iteration,
        "review_round": task.review_round,
        "crash_count": task.crash_count,
    }


def shown_to(task: Task, role: Role) -> Task:
    """A reviewer judges by what a human asked for, so the summary that it reads is the goal."""
    return replace(task, summary=task.goal) if role is Role.REVIEWER else task
