"""What is said of a task once nothing more happens by itself: how it ended, and what to do now."""

from lockgate.bootstrap import App
from lockgate.core.model.task import Status, Task
from lockgate.core.text.markdown import sections
from lockgate.core.text.steering import told_of, unseen
from lockgate.faces import words
from lockgate.services.task.views import large_change, needs_human


def ending_text(it: App, task: Task) -> str:
    match task.status:
        case Status.DONE:
            how = f" as {task.landed[: words.SHORT]}" if task.landed else ""
            large = f" ({large_change(task)})" if large_change(task) else ""
            return f"{task.id} is done: its change has landed{how}{large}"
        case Status.REVIEWING if not (task.held or task.troubled):
            return "\n".join(_to_land(it, task))
        case Status.CLARIFICATION:
            return "\n".join(_to_answer(it, task))
        case _:
            why = needs_human(task)
            told = words.moved_text(task) + (f": {words.one_line(why)}" if why else "")
            return f"{told}\n  why: lockgate task why {task.id}"


def _to_land(it: App, task: Task) -> list[str]:
    branch, project = words.one_line(task.branch), it.store.project(task.project)
    lines = [f"{task.id} has passed all its gates; the rest is yours:"]
    lines += [
        f"  look first: {words.one_line(told_of(files))}" for files in (unseen(task),) if files
    ]
    lines += [f"  {it}" for it in (large_change(task),) if it]
    lines += [f"  read it:   lockgate diff {task.id}"]
    lines += [f"  land it:   lockgate queue approve {task.id}"]
    if it.projects.repository.commit_of(project, task.branch) != task.candidate:
        lines += [f"  branch {branch} in your repository is another commit and was left alone"]
    return lines


def _to_answer(it: App, task: Task) -> list[str]:
    body = it.views.task(task.id).body or ""
    asked = [section.text for section in sections(body) if section.title == "Questions"]
    lines = [line for text in asked for line in words.safe(text).strip().splitlines()]
    return [
        f"{task.id} asks:",
        *(f"  {line}" for line in lines),
        f"  answer it: lockgate answer {task.id} -m TEXT",
    ]
