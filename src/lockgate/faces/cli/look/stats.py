"""`lockgate stats`: what landed, what it cost, how long things took, what failed."""

import csv as tables
import io

import click

from lockgate.core.model.people import Right
from lockgate.faces.cli.output import app, echo, here, json_option, show
from lockgate.faces.words import statistics as words
from lockgate.faces.words.task import safe
from lockgate.services.task.callers import must_be_human

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would carry out


@click.command()
@click.option("--days", default=30, type=click.IntRange(1, 3650), help="How many, up to today.")
@click.option("--here", "only_here", is_flag=True, help="Only of this project.")
@click.option("--csv", "as_csv", is_flag=True, help="A row for each figure, for a spreadsheet.")
@click.option("--rebuild", is_flag=True, help="Count all events again first.")
@json_option
def stats(*, days: int, only_here: bool, as_csv: bool, rebuild: bool, as_json: bool) -> None:
    """Show what landed, what it cost, how long it took, what failed.

    A day is one of UTC. Durations are counted in steps of a fifth; costs are what the agents'
    programs reported.
    """
    it = app()
    must_be_human(it.caller, "no statistics were shown", Right.LOOK)
    project = it.projects.here(here()).id if only_here else None
    if rebuild:
        must_be_human(it.caller, "the statistics were not made again", Right.ADMIN)
        it.statistics.rebuild()
    seen = it.statistics.over(days, project)
    if as_csv and not as_json:
        echo(_csv(words.stats_rows(seen)), nl=False)
        return
    show(seen.facts(), words.stats_text(seen), as_json=as_json)


def _csv(rows: "words.Rows") -> str:
    out = io.StringIO()
    written = tables.writer(out, lineterminator="\n")
    written.writerow(words.HEAD)
    for what, label, figure, value in rows:
        harmless = f"'{label}" if label.startswith(FORMULA) else label
        written.writerow((what, safe(harmless), figure, value))
    return out.getvalue()
