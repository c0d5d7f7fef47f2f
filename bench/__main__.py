"""All benches one after the other, and their table."""

from bench import (
    cold_start,
    gates,
    landing,
    layers,
    listing,
    parsing,
    services,
    sessions,
    transition,
)
from bench.harness import Measure, arguments, place, say, table

# The peers of the last one are big programs: they are loaded when nothing else is measured.
BENCHES = (cold_start, parsing, listing, gates, layers, services, landing, sessions, transition)

if __name__ == "__main__":
    measures: list[Measure] = []
    directory = arguments().dir
    for it in BENCHES:
        with place(directory) as where:
            measures += it.bench(where)
    say(f"\n{table(measures)}")
