"""The root command. Each command's module is imported only when that command is called."""

import sys

import click

from lockgate import __version__
from lockgate.errors import LockgateError
from lockgate.faces.cli import output
from lockgate.faces.cli.lazy import lazy_group

COMMANDS = {
    "demo": "lockgate.faces.cli.demo:demo",
    "init": "lockgate.faces.cli.init:init",
    "task": "lockgate.faces.cli.task:task",
    "resume": "lockgate.faces.cli.resume:resume",
    "events": "lockgate.faces.cli.events:events",
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


def main(argv: list[str] | None = None) -> None:
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: list[str]) -> int:
    """The command's exit code: 0 done, 1 refused or failed, 2 usage, 3 our bug, 130 interrupted."""
    as_json = "--json" in argv
    try:
        code = root.main(argv, prog_name="lockgate", standalone_mode=False)
    except LockgateError as error:
        return output.fail(error, as_json=as_json)
    except click.Abort:
        return output.INTERRUPTED
    except click.ClickException as error:
        return output.fail_usage(error, as_json=as_json)
    except KeyboardInterrupt:
        return output.INTERRUPTED
    except SystemExit:  # click's way out where whoever read our output has gone
        return 0
    except Exception as error:  # noqa: BLE001 - the last resort: our bug, told as one
        return output.fail_bug(error, as_json=as_json)
    return code if isinstance(code, int) else 0
