"""`lockgate queue simulate`: what the merge train does with changes that we make up."""

import math
import random
from pathlib import Path

import click

from lockgate.core.config.settings import MergeSettings
from lockgate.errors import Refused
from lockgate.faces.cli.output import json_option, show
from lockgate.faces.plot import Series, line_plot
from lockgate.faces.words import task as words
from lockgate.services.train.simulator import (
    Scenario,
    Simulated,
    chain_throughput,
    serial_throughput,
    simulate,
)

DEFAULTS = MergeSettings()
MOST = 64


def a_rate(_ctx: click.Context, _param: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("nan is not a number from 0 up to 1.")
    return value


@click.command("simulate")
@click.option("--changes", default=500, show_default=True, type=click.IntRange(1, 20_000))
@click.option(
    "--failure-rate",
    default=0.1,
    show_default=True,
    callback=a_rate,
    type=click.FloatRange(0, 1, max_open=True),
    help="The chance that a change fails on a good target.",
)
@click.option(
    "--window",
    default=DEFAULTS.window,
    show_default=True,
    type=click.IntRange(1, MOST),
    help="Candidates that are tested at once.",
)
@click.option(
    "--batch",
    default=DEFAULTS.batch,
    show_default=True,
    type=click.IntRange(1, MOST),
    help="Changes in one candidate.",
)
@click.option("--early", is_flag=True, help="Failures show at any moment, not at a test's end.")
@click.option("--seed", default=1, show_default=True, type=int, help="The same gives the same.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw it here too.")
@json_option
def simulate_queue(
    *,
    changes: int,
    failure_rate: float,
    window: int,
    batch: int,
    early: bool,
    seed: int,
    svg: Path | None,
    as_json: bool,
) -> None:
    """Run the queue's planner on made-up changes, and compare it with others.

    The changes never run out and all tests take the same time, T. The serial queue tests one change
    after the other; the chain is a train of single changes that starts again behind a failure.
    """
    scenario = Scenario(
        changes=changes, failure_rate=failure_rate, window=window, batch=batch, early=early
    )
    done = _simulated(scenario, seed)
    if svg:
        _write(svg, _picture(scenario, done))
    show(_facts(scenario, done), _text(scenario, done), as_json=as_json)


def picture(scenario: Scenario, seed: int) -> str:
    return _picture(scenario, _simulated(scenario, seed))


def _simulated(scenario: Scenario, seed: int) -> Simulated:
    return simulate(scenario, random.Random(seed).random)  # noqa: S311 - a simulation


def _picture(scenario: Scenario, done: Simulated) -> str:
    """Landings over time; the formulas are straight lines."""
    end = done.elapsed
    p, window = scenario.failure_rate, scenario.window
    landed = [(time, float(count)) for count, (time, _) in enumerate(done.landed, start=1)]
    return line_plot(
        (f"Landed, {p:.0%} of the changes fail, window {window}", "time in T"),
        (
            Series("the train", [(0.0, 0.0), *landed]),
            Series("chain formula", [(0.0, 0.0), (end, end * chain_throughput(p, window))]),
            Series("serial queue", [(0.0, 0.0), (end, end * serial_throughput(p))]),
        ),
    )


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        what, why = "the plot was not written", error.strerror or str(error)
        raise Refused(what, why=f"{path}: {why}", fix="name a file that can be written") from error


def _facts(scenario: Scenario, done: Simulated) -> dict[str, object]:
    chain = chain_throughput(scenario.failure_rate, scenario.window)
    serial = serial_throughput(scenario.failure_rate)
    return {
        "landed": len(done.landed),
        "dropped": len(done.dropped),
        "elapsed": done.elapsed,
        "tests": done.tests,
        "cancelled": done.cancelled,
        "throughput": done.throughput,
        "serial": serial,
        "chain": chain,
        "times_serial": done.throughput / serial,
        "times_chain": done.throughput / chain,
        "broken_promises": list(done.broken_promises),
    }


def _text(scenario: Scenario, done: Simulated) -> str:
    chain = chain_throughput(scenario.failure_rate, scenario.window)
    serial = serial_throughput(scenario.failure_rate)
    rows = [
        ("", "LANDED PER T", "THE TRAIN IS"),
        ("the train", f"{done.throughput:.2f}", ""),
        ("chain formula", f"{chain:.2f}", f"{done.throughput / chain:.2f} x"),
        ("serial queue", f"{serial:.2f}", f"{done.throughput / serial:.2f} x"),
    ]
    ended = f"{len(done.landed)} landed and {len(done.dropped)} dropped in {done.elapsed:.1f} T"
    cost = f"{done.tests} tests, {done.cancelled} of them cancelled"
    broken = [f"broken: {it}" for it in done.broken_promises]
    return "\n".join([words.table(rows), "", f"{ended}; {cost}", *broken])
