"""`lockgate gate`: the gates of a repository, looked at and run."""

import click

from lockgate.faces.cli.lazy import lazy_group

READ = "lockgate.faces.cli.gate_read"
COMMANDS = {
    "list": f"{READ}:list_gates",
    "check": f"{READ}:check",
    "explain": f"{READ}:explain",
    "run": "lockgate.faces.cli.gate_run:run",
}


@click.group(cls=lazy_group(COMMANDS))
def gate() -> None:
    """Look at the gates that judge every change, and run them on what you have committed."""
