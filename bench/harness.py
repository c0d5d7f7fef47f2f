"""Runs contenders in turn and compares their medians; a figure alone says more of the machine."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROUNDS = 40
FEWEST = 30  # rounds that a median is taken of
PATIENCE = 60.0  # seconds for one comparison, whatever its rounds
BUILD = Path(__file__).parent.parent / "build"
IN_MEMORY = ("tmpfs", "ramfs")

# Does its work once and answers the seconds that count.
Work = Callable[[], float]


@dataclass(frozen=True, slots=True)
class AtMost:
    """Ours may take so many times what the peer takes."""

    times: float


@dataclass(frozen=True, slots=True)
class Faster:
    """The peer must take so many times what ours takes."""

    times: float


Target = AtMost | Faster | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One line of the table: two times in seconds, and what their ratio should be."""

    name: str
    ours: float
    peer: str
    theirs: float
    target: Target = None


Medians = dict[str, float]


def clocked(work: Callable[[], object], repeat: int = 1) -> Work:
    """The time of the whole call; `repeat` it where one is too short for the clock."""

    def run() -> float:
        begin = time.perf_counter()
        for _ in range(repeat):
            work()
        return (time.perf_counter() - begin) / repeat

    return run


def interleave(contenders: dict[str, Work], rounds: int = ROUNDS) -> Medians:
    """The median of each; all run in every round, each second one backwards. The first warms up."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    end = time.monotonic() + PATIENCE
    done = 0
    for number in range(rounds + 1):
        for name in order if number % 2 else reversed(order):
            seconds = contenders[name]()
            if number:
                taken[name].append(seconds)
        done = number
        if done and time.monotonic() > end:
            break
    short = "" if done >= FEWEST else f", fewer than {FEWEST}: the machine is slow or busy"
    say(f"  medians of {done} rounds, in turn{short}")
    return {name: median(values) for name, values in taken.items()}


def ratio(it: Measure) -> float:
    return it.theirs / it.ours if isinstance(it.target, Faster) else it.ours / it.theirs


def verdict(it: Measure) -> str:
    match it.target:
        case None:
            return "–"
        case AtMost(times):
            return "met" if ratio(it) <= times else "missed"
        case Faster(times):
            return "met" if ratio(it) >= times else "missed"


def table(measures: Sequence[Measure]) -> str:
    head = ("measure", "ours", "peer", "", "ratio", "target", "")
    lines = [head, *(_cells(it) for it in measures)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    right = (1, 3, 4)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if n in right else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def shown(seconds: float) -> str:
    return f"{1000 * seconds:.3f} ms"


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(bench: Callable[[Path], list[Measure]]) -> None:
    """One bench as a program."""
    with place(arguments().dir) as where:
        say(table(bench(where)))


def arguments(parser: argparse.ArgumentParser | None = None) -> argparse.Namespace:
    parser = parser or argparse.ArgumentParser()
    parser.add_argument("--dir", type=Path, default=BUILD, help="where to work; default: build/")
    return parser.parse_args()


@contextmanager
def place(beside: Path) -> Iterator[Path]:
    """A directory that is gone afterwards, on a disk where possible."""
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=beside.absolute()) as name:
        kind = file_system(Path(name))
        warning = "  NOT A DISK: what is durable costs nothing here" if kind in IN_MEMORY else ""
        cores = os.cpu_count()
        say(f"in {name} ({kind}), Python {sys.version.split()[0]}, {cores} cores{warning}")
        yield Path(name)


def file_system(where: Path) -> str:
    """Its kind, as the kernel's list of mounts has it; Linux only."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "file system unknown"
    rows = [line.split() for line in mounts.read_text(encoding="utf-8").splitlines()]
    holding = [row for row in rows if where.resolve().is_relative_to(row[1])]
    return max(holding, key=lambda row: len(row[1]))[2] if holding else "file system unknown"


def _cells(it: Measure) -> tuple[str, ...]:
    unit = "x faster" if isinstance(it.target, Faster) else "x"
    value = f"{ratio(it):.2f} {unit}"
    return it.name, shown(it.ours), it.peer, shown(it.theirs), value, _told(it.target), verdict(it)


def _told(target: Target) -> str:
    match target:
        case None:
            return "–"
        case AtMost(times):
            return f"<= {times:g} x"
        case Faster(times):
            return f">= {times:g} x faster"
