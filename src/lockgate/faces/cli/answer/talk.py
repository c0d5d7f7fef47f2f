"""What people say to a task's agent: `lockgate say`, and `task edit` for the task itself."""

import click

from lockgate.core.model.people import Right
from lockgate.core.model.task import Task
from lockgate.faces.cli.operate.tasks import HOW, read_context, split, written
from lockgate.faces.cli.output import app, json_option, named, show
from lockgate.faces.words import task as words
from lockgate.services.task.callers import must_be_human
from lockgate.services.task.views import task_facts

ID = click.argument("name", metavar="ID")
PLACE = click.IntRange(1)


@click.command()
@ID
@click.argument("text", required=False)
@click.option("--file", metavar="FILE|-", help="The text; - reads stdin.")
@click.option(
    "--now", "at_once", is_flag=True, help="Interrupt the agent; it continues with this message."
)
@click.option("--edit", "place", type=PLACE, metavar="N", help="Change message N.")
@click.option("--drop", type=PLACE, metavar="N", help="Delete message N.")
@json_option
def say(
    *,
    name: str,
    text: str | None,
    file: str | None,
    at_once: bool,
    place: int | None,
    drop: int | None,
    as_json: bool,
) -> None:
    """Send a message to a task's agent, which reads it at its next turn.

    Its next turn is when it stops or hands in, or when it is started again. --now interrupts it: it
    continues in the same conversation with your message, if the agent can do that. Without TEXT
    the messages that it has not read yet are shown; --edit N and --drop N change them.
    """
    if sum(it is not None for it in (text, file, drop)) > 1 or (at_once and (place or drop)):
        raise click.UsageError("say one thing: TEXT, --file, --edit N or --drop N")
    it = app()
    id = named(it, name)
    what = f"nothing was said to the agent of task {id}"
    told = read_context(file, what, "text") if file is not None else text
    if place is not None or drop is not None:
        changed = told if drop is None else ""
        if changed is None:
            changed = written(_word(it.views.load(id), place or 0), "The word.", what)
        _show(it.people.change_word(id, place or drop or 0, changed, it.caller), as_json=as_json)
    elif told is None and not at_once:
        must_be_human(it.caller, f"no message to the agent of task {id} was shown", Right.LOOK)
        _show(it.views.load(id), as_json=as_json)
    else:
        task = it.people.say(id, told or "", it.caller, at_once=at_once)
        show(task_facts(task), words.said_text(task, at_once=at_once), as_json=as_json)


def _word(task: Task, place: int) -> str:
    return task.words[place - 1].text if place <= len(task.words) else ""


def _show(task: Task, *, as_json: bool) -> None:
    queue = [{"place": n, "text": it.text, "said": it.said} for n, it in enumerate(task.words, 1)]
    show({"task": task.id, "words": queue}, words.words_text(task), as_json=as_json)


@click.command()
@ID
@click.option("--file", metavar="FILE|-", help="The new text instead of your editor; - is stdin.")
@json_option
def edit(*, name: str, file: str | None, as_json: bool) -> None:
    """Change the goal and the Context of a task in your editor.

    The first line is its goal, the rest its Context. An agent that works on it is told at its next
    turn; reviewers judge by the new goal.
    """
    it = app()
    id = named(it, name)
    what = f"task {id} was not edited"
    must_be_human(it.caller, what)
    goal, context = it.people.description(id)
    old = f"{goal}\n\n{context}".rstrip()
    text = written(old, HOW, what) if file is None else read_context(file, what, "text")
    task = it.people.edit(id, *split(text), it.caller)
    show(task_facts(task), f"{task.id} is edited: {words.one_line(task.goal)}", as_json=as_json)
