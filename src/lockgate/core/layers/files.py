"""A set-up layer as its files, by content, and the programs that commands start."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

LINK = "-> "  # before the place that a link leads to
_WORDS = re.compile(r"[;&|()\n]+|[^\s;&|()]+")
_BEFORE = re.compile(r"-.*|[A-Za-z_]\w*=.*", re.DOTALL)  # options and variables
_LAUNCHERS = frozenset({"env", "exec", "npx", "pnpx", "bunx", "time", "timeout", "run", "nice"})


class Layer(Struct, frozen=True):
    """Path → what tells its content from another; of a link, `-> ` and where it leads.

    `text` is empty for what is no text, is too big or is not there.
    """

    files: Mapping[str, str]
    text: Callable[[str], str]


def differing(base: Layer, change: Layer) -> tuple[str, ...]:
    every = {*base.files, *change.files}
    return tuple(sorted(it for it in every if base.files.get(it) != change.files.get(it)))


def invoked(commands: Iterable[str]) -> frozenset[str]:
    """The last parts of the names of programs, and of modules behind `-m`."""
    found = (it for command in commands for it in _started(command))
    return frozenset(it if it.startswith("@") else it.rpartition("/")[2] for it in found)


def _started(command: str) -> Iterator[str]:
    starts = True
    for word in _WORDS.findall(command):
        if word[0] in ";&|()\n" or word in {"-m", "exec", "run"}:
            starts = True
        elif starts and not _BEFORE.fullmatch(word):
            yield word
            starts = word in _LAUNCHERS
