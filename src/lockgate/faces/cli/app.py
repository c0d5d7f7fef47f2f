"""The root command. Each command's module is imported only when that command is called."""

import sys

import click

from lockgate import __version__
from lockgate.errors import LockgateError
from lockgate.faces.cli import output
from lockgate.faces.cli.lazy import lazy_group

COMMANDS = {
    "answer": "lockgate.faces.cli.people:answer",
    "approve": "lockgate.faces.cli.approving:approve",
    "auth": "lockgate.faces.cli.auth:auth",
    "checkpoint": "lockgate.faces.cli.checkpoint:checkpoint",
    "comment": "lockgate.faces.cli.approving:comment",
    "demo": "lockgate.faces.cli.demo:demo",
    "diff": "lockgate.faces.cli.people:diff",
    "doctor": "lockgate.faces.cli.doctor:doctor",
    "gate": "lockgate.faces.cli.gate:gate",
    "handback": "lockgate.faces.cli.people:handback",
    "init": "lockgate.faces.cli.init:init",
    "open": "lockgate.faces.cli.people:open_change",
    "queue": "lockgate.faces.cli.queue:queue",
    "review": "lockgate.faces.cli.review:review",
    "run": "lockgate.faces.cli.run:run",
    "step": "lockgate.faces.cli.step:step",
    "takeover": "lockgate.faces.cli.people:takeover",
    "task": "lockgate.faces.cli.task:task",
    "reject": "lockgate.faces.cli.approving:reject",
    "resume": "lockgate.faces.cli.resume:resume",
    "events": "lockgate.faces.cli.events:events",
    "trust": "lockgate.faces.cli.trust:trust",
    "up": "lockgate.faces.cli.up:up",
    "down": "lockgate.faces.cli.up:down",
    "status": "lockgate.faces.cli.status:status",
    "verify": "lockgate.faces.cli.queue_read:verify",
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
        from lockgate.faces.cli.task_read import list_tasks

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
