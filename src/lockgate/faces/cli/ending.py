"""What is said of a task once nothing more happens by itself: how it ended, and what to do now."""

from lockgate.bootstrap import App
from lockgate.core.markdown import sections
from lockgate.core.model import Status, Task
from lockgate.faces import words
from lockgate.services.views import needs_human


def ending_text(it: App, task: Task) -> str:
    match task.status:
        case Status.DONE:
            return f"{task.id} is done: its change has landed"
        case Status.REVIEWING:
            return "\n".join(_to_merge(it, task))
        case Status.CLARIFICATION:
            return "\n".join(_to_answer(it, task))
        case _:
            why = needs_human(task)
            told = words.moved_text(task) + (f": {words.one_line(why)}" if why else "")
            return f"{told}\n  why: lockgate task why {task.id}"


def _to_merge(it: App, task: Task) -> list[str]:
    branch, project = words.one_line(task.branch), it.store.project(task.project)
    lines = [f"{task.id} has passed all its gates; the rest is yours:"]
    lines += [f"  read it:   lockgate diff {task.id}"]
    if it.projects.repository.commit_of(project, task.branch) == task.candidate:
        lines += [f"  merge it:  git merge {branch}"]
    else:
        copy = it.workspaces.base(project).with_name("judge.git")
        lines += [f"  branch {branch} in your repository is another commit and was left alone;"]
        lines += [f"  merge it:  git pull {copy} {task.candidate}"]
    return [*lines, f"  then:      lockgate task update {task.id} --status done"]


def _to_answer(it: App, task: Task) -> list[str]:
    body = it.views.task(task.id).body or ""
    asked = [section.text for section in sections(body) if section.title == "Questions"]
    lines = [line for text in asked for line in words.safe(text).strip().splitlines()]
    return [
        f"{task.id} asks:",
        *(f"  {line}" for line in lines),
        f"  answer it: lockgate answer {task.id} -m TEXT",
    ]
