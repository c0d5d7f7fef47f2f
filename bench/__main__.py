"""All benches one after the other, and their table."""

from bench import (
    board,
    cold_start,
    differential,
    feed,
    gates,
    landing,
    layers,
    listing,
    mcp,
    parsing,
    scale,
    services,
    sessions,
    transition,
    wakes,
    web,
)
from bench.harness import Measure, arguments, place, say, table

# The peers of the last one are big programs: they are loaded when nothing else is measured.
BENCHES = (
    cold_start,
    parsing,
    listing,
    board,
    wakes,
    scale,
    gates,
    differential,
    layers,
    services,
    landing,
    sessions,
    feed,
    mcp,
    web,
    transition,
)

if __name__ == "__main__":
    measures: list[Measure] = []
    directory = arguments().dir
    for it in BENCHES:
        with place(directory) as where:
            measures += it.bench(where)
    say(f"\n{table(measures)}")
