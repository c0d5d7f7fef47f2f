"""The root command. Each command's module is imported only when that command is called."""

import sys
from importlib import import_module

import click

from lockgate import __version__
from lockgate.errors import LockgateError
from lockgate.faces.cli import output

# A click group that imports a command's module only when that command is called.


class Lazy(click.Group):
    """`places` names each command's function as `module:function`."""

    places: dict[str, str]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self.places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, name = place.split(":")
        command: click.Command = getattr(import_module(module), name)
        return command


def lazy_group(places: dict[str, str]) -> type[Lazy]:
    return type("LazyGroup", (Lazy,), {"places": places})


COMMANDS = {
    "answer": "lockgate.faces.cli.answer.people:answer",
    "approve": "lockgate.faces.cli.answer.people:approve",
    "auth": "lockgate.faces.cli.setup.auth:auth",
    "checkpoint": "lockgate.faces.cli.agents.signals:checkpoint",
    "comment": "lockgate.faces.cli.answer.people:comment",
    "demo": "lockgate.faces.demo.command:demo",
    "diff": "lockgate.faces.cli.answer.people:diff",
    "doctor": "lockgate.faces.cli.setup.doctor:doctor",
    "gate": "lockgate.faces.cli.groups:gate",
    "handback": "lockgate.faces.cli.answer.people:handback",
    "init": "lockgate.faces.cli.setup.init:init",
    "open": "lockgate.faces.cli.answer.people:open_change",
    "queue": "lockgate.faces.cli.groups:queue",
    "review": "lockgate.faces.cli.agents.signals:review",
    "run": "lockgate.faces.cli.operate.run:run",
    "step": "lockgate.faces.cli.agents.step:step",
    "takeover": "lockgate.faces.cli.answer.people:takeover",
    "task": "lockgate.faces.cli.groups:task",
    "reject": "lockgate.faces.cli.answer.people:reject",
    "resume": "lockgate.faces.cli.answer.people:resume",
    "events": "lockgate.faces.cli.look.tasks:events",
    "trust": "lockgate.faces.cli.setup.trust:trust",
    "up": "lockgate.faces.cli.operate.up:up",
    "down": "lockgate.faces.cli.operate.up:down",
    "status": "lockgate.faces.cli.operate.up:status",
    "verify": "lockgate.faces.cli.operate.queue:verify",
}


@click.group(cls=lazy_group(COMMANDS), invoke_without_command=True)
@click.version_option(__version__, prog_name="lockgate")
@output.json_option
@click.pass_context
def root(ctx: click.Context, *, as_json: bool) -> None:
    """Run coding agents on a repository; nothing lands that has not passed its gates.

    Without a command: the board of the project you stand in.
    """
    if ctx.invoked_subcommand is None:
        from lockgate.faces.cli.look.tasks import list_tasks

        ctx.invoke(list_tasks, as_json=as_json)
    elif as_json:
        raise click.UsageError(f"--json goes after the command: {ctx.invoked_subcommand} --json")


# What leaves something for the orchestrator to do.
ACTING = frozenset(
    {"answer", "approve", "checkpoint", "handback", "reject", "resume", "review", "takeover"}
    | {f"task {it}" for it in ("cancel", "complete", "create", "repin", "respawn", "start")}
    | {"task update", "queue approve", "queue hold", "queue drop"}
)


def main(argv: list[str] | None = None) -> None:
    words = sys.argv[1:] if argv is None else argv
    code = run(words)
    if code == 0 and not ACTING.isdisjoint({words[0], " ".join(words[:2])} if words else ()):
        output.wake()
    sys.exit(code)


def run(argv: list[str], to: output.Terminal | None = None) -> int:
    """The command's exit code: 0 done, 1 refused or failed, 2 usage, 3 our bug, 130 interrupted."""
    as_json = "--json" in argv
    try:
        code = root.main(argv, prog_name="lockgate", standalone_mode=False, obj=to)
    except LockgateError as error:
        return output.fail(error, to, as_json=as_json)
    except click.Abort:
        return output.INTERRUPTED
    except click.ClickException as error:
        return output.fail_usage(error, to, as_json=as_json)
    except KeyboardInterrupt:
        return output.INTERRUPTED
    except SystemExit:  # click's way out where whoever read our output has gone
        return 0
    except Exception as error:  # noqa: BLE001 - the last resort: our bug, told as one
        return output.fail_bug(error, to, as_json=as_json)
    return code if isinstance(code, int) else 0
