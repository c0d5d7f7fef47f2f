"""The root command. Each command's module is imported only when that command is called."""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from lockgate import __version__
from lockgate.errors import LockgateError, did_you_mean
from lockgate.faces.cli.commands import COMMANDS, SAYS, help_text
from lockgate.faces.cli.flags import COMPLETING, json_option, wants_json

if TYPE_CHECKING:
    from lockgate.faces.cli.output import Terminal

# A click group that imports a command's module only when that command is called.


class Lazy(click.Group):
    """`places` names each command's function as `module:function`; `says` is its line of help."""

    places: dict[str, str]
    says: dict[str, str]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self.places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, name = place.split(":")
        command: click.Command = getattr(import_module(module), name)
        if COMPLETING not in os.environ:
            return command
        from lockgate.faces.cli.setup.completion import offering_ids

        return offering_ids(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A command that is not there is told with those that may be meant."""
        found = self.get_command(ctx, args[0])
        if found is None and not ctx.resilient_parsing and not args[0].startswith("-"):
            known = [*self.list_commands(ctx), *self.further(ctx, args[0])]
            meant = did_you_mean(args[0], known)
            raise click.UsageError(f"No such command {args[0]!r}. {meant}".strip(), ctx)
        if found is not None and wants_json(ctx) and not _takes_json(found):
            raise click.UsageError(f"{args[0]} has no --json", ctx)
        return super().resolve_command(ctx, args)

    def further(self, ctx: click.Context, name: str) -> list[str]:
        """The commands of this name in the groups below, with the group in front."""
        if ctx.parent is not None:
            return []
        groups = [(it, self.get_command(ctx, it)) for it in ("task", "queue", "gate")]
        below = [(it, group) for it, group in groups if isinstance(group, Lazy)]
        return [f"{it} {name}" for it, group in below if name in group.places]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click does it, but from `says`: the commands themselves take long to import."""
        names = self.list_commands(ctx)
        width = formatter.width - 6 - max(map(len, names))
        listed = (click.Command(name, help=self.says[name]) for name in names)
        with formatter.section("Commands"):
            formatter.write_dl([(str(it.name), it.get_short_help_str(width)) for it in listed])


def _takes_json(command: click.Command) -> bool:
    return isinstance(command, click.Group) or any(it.name == "as_json" for it in command.params)


def lazy_group(places: dict[str, str], says: dict[str, str]) -> type[Lazy]:
    return type("LazyGroup", (Lazy,), {"places": places, "says": says})


class Root(Lazy):
    """The commands in sections, listed by a text that is there without click too."""

    places = COMMANDS
    says = SAYS

    def get_help(self, ctx: click.Context) -> str:
        del ctx  # click's signature
        return help_text()


@click.group(cls=Root, invoke_without_command=True)
@click.version_option(__version__, prog_name="lockgate")
@json_option
@click.pass_context
def root(ctx: click.Context, *, as_json: bool) -> None:
    """Run coding agents on a repository; nothing lands that has not passed its gates."""
    if ctx.invoked_subcommand is not None:
        return
    from lockgate.faces.cli.look.tui import INSTALL, is_installed, opens_here, tui

    board = opens_here() and not as_json
    if board and is_installed():
        ctx.invoke(tui)
        return
    from lockgate.faces.cli.look.tasks import list_tasks

    ctx.invoke(list_tasks, as_json=as_json)
    if board:
        click.echo(f"note: the board that you can act on needs {INSTALL}", err=True)


# What leaves something for the orchestrator to do.
ACTING = frozenset(
    {"answer", "approve", "checkpoint", "handback", "reject", "resume", "review", "say"}
    | {"takeover"}
    | {f"task {it}" for it in ("cancel", "complete", "create", "repin", "respawn", "start")}
    | {"task drop-dependency", "task update"}
    | {"queue approve", "queue hold", "queue drop", "undo"}
)


def main(argv: list[str] | None = None) -> None:
    asked = sys.argv[1:] if argv is None else argv
    code = run(asked)
    words = [it for it in asked if it != "--json"]
    if code == 0 and not ACTING.isdisjoint({words[0], " ".join(words[:2])} if words else ()):
        from lockgate.faces.cli.output import wake

        wake()
    sys.exit(code)


def run(argv: list[str], to: "Terminal | None" = None) -> int:
    """The command's exit code: 0 done, 1 refused or failed, 2 usage, 3 our bug, 130 interrupted."""
    as_json = "--json" in argv
    try:
        code = root.main(argv, prog_name="lockgate", standalone_mode=False, obj=to)
    except SystemExit:  # click's way out where the reader of our output has gone
        return 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last resort: told as our bug
        return _failed(error, to, as_json=as_json)
    return code if isinstance(code, int) else 0


def _failed(error: BaseException, to: "Terminal | None", *, as_json: bool) -> int:
    from lockgate.faces.cli import output

    if isinstance(error, LockgateError):
        return output.fail(error, to, as_json=as_json)
    if isinstance(error, click.ClickException):
        return output.fail_usage(error, to, as_json=as_json)
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return output.INTERRUPTED
    return output.fail_bug(error, to, as_json=as_json)
