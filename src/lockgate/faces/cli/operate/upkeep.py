"""`lockgate backup`, `restore` and `db migrate-to`: copies of a home, and another database."""

from pathlib import Path

import click

from lockgate.bootstrap.backup import back_up
from lockgate.bootstrap.backup import restore as put_back
from lockgate.bootstrap.moving import move_to
from lockgate.core.model.facts import as_facts
from lockgate.core.model.people import Right
from lockgate.faces.cli.output import app, here, json_option, show
from lockgate.services.task.callers import must_be_human

MIB = 1 << 20


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def backup(*, file: Path, as_json: bool) -> None:
    """Write a copy of this home to FILE, while everything goes on.

    It has the database, TASK.md and history of every task, what you agreed to, and the commits that
    were judged. It has no login, and no work that an agent has not handed in or checkpointed.
    """
    it = app()
    must_be_human(it.caller, "no backup was written", Right.ADMIN)
    kept = back_up(it, here() / file)
    told = f"{file}: {kept.tasks} tasks, {kept.events} events, {kept.size / MIB:.1f} MiB"
    show(as_facts(kept), told, as_json=as_json)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def restore(*, file: Path, as_json: bool) -> None:
    """Make a home from a backup, on this machine or another.

    LOCKGATE_HOME names it; it must have no tasks yet. What comes back is compared with the file
    before this says so. Log agents in again afterwards: lockgate auth.
    """
    kept = put_back(here() / file)
    lines = [f"restored: {kept.tasks} tasks, {kept.events} events, as the backup has them"]
    lines += [f"this repository is missing, put a clone there: {it}" for it in kept.missing]
    show(as_facts(kept), "\n".join(lines), as_json=as_json)


@click.command("migrate-to")
@click.argument("url")
@json_option
def migrate_to(*, url: str, as_json: bool) -> None:
    """Move all that the database holds to URL, and use that from now on.

    URL is postgresql://user@host:port/name, or the word sqlite for the file in the home. Stop the
    orchestrator first. Every table and the chain of events are compared before the new database is
    used; the old one is kept as it is. The URL is stored in the home, readable by you alone.
    """
    it = app()
    must_be_human(it.caller, "the database was not moved", Right.ADMIN)
    moved = move_to(it, url)
    rows = sum(table.rows for table in moved.tables.values())
    lines = (
        f"this home uses {moved.now} now: {len(moved.tables)} tables, {rows} rows, all the same",
        f"kept: {moved.kept}",
    )
    show(as_facts(moved), "\n".join(lines), as_json=as_json)
