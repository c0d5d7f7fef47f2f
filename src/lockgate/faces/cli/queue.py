"""`lockgate queue`: the merge train."""

import click

from lockgate.faces.cli.lazy import lazy_group

READ = "lockgate.faces.cli.queue_read"
WRITE = "lockgate.faces.cli.queue_write"
COMMANDS = {
    "list": f"{READ}:list_queue",
    "approve": f"{WRITE}:approve",
    "hold": f"{WRITE}:hold",
    "drop": f"{WRITE}:drop",
    "simulate": "lockgate.faces.cli.simulating:simulate_queue",
}


@click.group(cls=lazy_group(COMMANDS))
def queue() -> None:
    """The changes that wait to land, and the train that tests them together."""
