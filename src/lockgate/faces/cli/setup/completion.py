"""`lockgate completion`: what a shell needs to complete commands, options and task ids."""

from contextlib import suppress
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from lockgate.core.model.task import Task
from lockgate.errors import LockgateError, Refused
from lockgate.faces.cli.flags import COMPLETING
from lockgate.faces.cli.output import app, echo, here
from lockgate.faces.words.task import one_line

LOADS = {
    "bash": 'put into ~/.bashrc: eval "$(lockgate completion bash)"',
    "zsh": 'put into ~/.zshrc: eval "$(lockgate completion zsh)"',
    "fish": "put into ~/.config/fish/config.fish: lockgate completion fish | source",
}
NEWEST = 100  # tasks whose ids are offered


@click.command(epilog="\n\n".join(f"{shell}: {it}" for shell, it in LOADS.items()))
@click.argument("shell", type=click.Choice(tuple(LOADS)))
def completion(*, shell: str) -> None:
    """Print the completion script for your shell.

    It completes commands, options and task ids: eval "$(lockgate completion bash)".
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise Refused("nothing was printed", why=f"{shell} is not known here", fix="use bash")
    root = click.get_current_context().find_root()
    made = kind(root.command, {}, "lockgate", COMPLETING)
    echo(made.source_template % made.source_vars())


class TaskName(click.ParamType[str]):
    """A task's id, or the beginning of one."""

    name = "task"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,  # noqa: ARG002 - click's signature
        ctx: click.Context | None,  # noqa: ARG002 - click's signature
    ) -> str:
        return str(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002 - click's signature
        incomplete: str,
    ) -> list[CompletionItem]:
        """The newest tasks of the project that one stands in; none where that cannot be told."""
        with suppress(LockgateError, OSError):
            found = [task for task in _tasks() if task.id.startswith(incomplete)]
            return [CompletionItem(task.id, help=one_line(task.summary)) for task in found]
        return []


def _tasks() -> tuple[Task, ...]:
    """A session has no other task than its own."""
    it = app()
    if it.caller.session:
        return (it.views.load(it.caller.session.task),)
    return it.views.newest(it.projects.here(here()).id, NEWEST)


def offering_ids(command: click.Command) -> click.Command:
    """The command, whose arguments and options that name a task complete its id."""
    for it in command.params:
        if it.metavar in {"ID", "[ID]"}:
            it.type = TaskName()
    return command
