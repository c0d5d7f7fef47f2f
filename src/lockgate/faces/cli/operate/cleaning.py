"""`lockgate du` and `prune`: where disk space goes, and what is removed to get it back."""

from collections import Counter
from collections.abc import Iterable

import click

from lockgate.bootstrap.upkeep import cleaner_of
from lockgate.core.model.facts import as_facts
from lockgate.core.model.people import Right
from lockgate.errors import LockgateError
from lockgate.faces.cli.output import app, echo, json_option, show
from lockgate.faces.words import task as words
from lockgate.services.setup.cleaning import Cleaner, Going, Usage
from lockgate.services.task.callers import must_be_human

STEP = 1000
FEW = 50  # loose objects below which nobody notices that they are not packed


@click.command()
@json_option
def du(*, as_json: bool) -> None:
    """Show where the disk space of this home goes, by project and kind."""
    it = app()
    must_be_human(it.caller, "nothing was measured", Right.LOOK)
    rows = cleaner_of(it).usage()
    total = sum(row.size for row in rows)
    facts = {"home": str(it.home), "bytes": total, "rows": [as_facts(row) for row in rows]}
    show(facts, _usage_text(rows, total), as_json=as_json)


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would go, and remove nothing.")
@json_option
def prune(*, dry_run: bool, as_json: bool) -> None:
    """Remove what is too old to be kept, and pack repositories, now.

    An orchestrator does the same in small steps. How long each kind is kept is in settings.toml of
    the home, under [keep], in days. Events, evidence and the change of every landed task stay;
    nothing goes that a live task or a running session uses.
    """
    it = app()
    must_be_human(it.caller, "nothing was removed", Right.ADMIN)
    cleaner = cleaner_of(it)
    gone = cleaner.plan() if dry_run else _all(cleaner)
    packed = _packed(cleaner, dry_run=dry_run)
    facts = {
        "dry_run": dry_run,
        "bytes": sum(it.size for it in gone) + sum(packed.values()),
        "things": [as_facts(it) for it in gone],
        "packed": packed,
    }
    show(facts, _gone_text(gone, packed, dry_run=dry_run), as_json=as_json)


def _all(cleaner: Cleaner) -> tuple[Going, ...]:
    """In steps, until one finds nothing more that can go."""
    gone = tuple[Going, ...]()
    while step := cleaner.clean(STEP):
        gone += step
    return gone


def _packed(cleaner: Cleaner, *, dry_run: bool) -> dict[str, int]:
    """The bytes that each project's repositories take less."""
    packed = dict[str, int]()
    for project in list(cleaner.to_pack(FEW, 5)):
        try:
            packed[project.name] = 0 if dry_run else cleaner.pack(project)
        except LockgateError as error:
            echo(f"{project.name}: {words.one_line(f'{error} ({error.fix})')}", err=True)
    return packed


def _usage_text(rows: Iterable[Usage], total: int) -> str:
    listed = [(row.project or "(home)", row.kind, size(row.size)) for row in rows if row.size]
    return "\n".join((words.table(listed), f"{size(total)} in all"))


def _gone_text(gone: Iterable[Going], packed: dict[str, int], *, dry_run: bool) -> str:
    counts, sizes = Counter[str](), Counter[str]()
    for it in gone:
        counts[it.kind] += 1
        sizes[it.kind] += it.size
    rows = [(kind, str(counts[kind]), size(sizes[kind])) for kind in counts]
    for name, less in packed.items():
        rows.append(("packing", name, "" if dry_run else size(less)))
    if not rows:
        return "nothing is too old, and nothing is to be packed"
    free = sum(sizes.values()) + sum(packed.values())
    word = "would go" if dry_run else "went"
    return "\n".join((words.table(rows), f"{sum(counts.values())} things {word}, {size(free)}"))


def size(amount: int) -> str:
    for unit, word in ((10**9, "GB"), (10**6, "MB"), (10**3, "KB")):
        if abs(amount) >= unit:
            return f"{amount / unit:.1f} {word}"
    return f"{amount} B"
