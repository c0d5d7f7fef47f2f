"""Plain shell commands taken apart: which program they run, with which arguments."""

import re
import shlex
from collections.abc import Iterator, Sequence

from msgspec import Struct

# What only starts another program, with the options of it that take a value.
_STARTERS = {
    "uv": ("run",),
    "poetry": ("run",),
    "pdm": ("run",),
    "hatch": ("run",),
    "pipenv": ("run",),
    "rye": ("run",),
    "coverage": ("run",),
    "npx": (),
    "env": (),
    "time": (),
    "nice": (),
    "exec": (),
    "cross-env": (),
    "c8": (),
    "nyc": (),
    "dotenv": (),
    "xvfb-run": (),
}
_TAKES_VALUE = frozenset(
    {"--group", "--extra", "--with", "--python", "-p", "--only-group", "--package", "--source"}
    | {"--reporter", "-r", "--timeout", "--rcfile", "-e", "--env", "--all-files", "--include"}
)
_VARIABLE = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_JOINED = re.compile(r"&&|\|\||;|\n")


class Call(Struct, frozen=True):
    """One program and its arguments; `python -m NAME` is the program NAME."""

    program: str
    arguments: tuple[str, ...]
    variables: tuple[str, ...] = ()


def calls_in(text: str) -> Iterator[Call]:
    """The programs that a script runs, one after the other; what is no plain shell is left out."""
    joined = re.sub(r"\\\n", " ", text)
    for part in _JOINED.split(joined):
        call = call_of(part)
        if call:
            yield call


def call_of(command: str) -> Call | None:
    try:
        words = shlex.split(command.strip().removeprefix("@").removeprefix("-"), comments=True)
    except ValueError:
        return None
    variables: list[str] = []
    while words and _VARIABLE.fullmatch(words[0]):
        variables.append(words.pop(0))
    words = _started(words)
    if not words:
        return None
    return Call(words[0].rpartition("/")[2], tuple(words[1:]), tuple(variables))


def _started(words: Sequence[str]) -> list[str]:
    """Without `uv run`, `python -m` and others of their kind before it."""
    rest = list(words)
    while rest:
        program = rest[0].rpartition("/")[2]
        if re.fullmatch(
            r"python[\d.]*|py|\$\(?\{?PYTHON\}?\)?|\$\$?PYTHON", program, re.IGNORECASE
        ):
            found = _module(rest[1:])
            if found is None:
                return rest
            rest = found
        elif program in _STARTERS and rest[1 : 1 + len(_STARTERS[program])] == list(
            _STARTERS[program]
        ):
            rest = _behind_options(rest[1 + len(_STARTERS[program]) :])
        else:
            return rest
    return rest


def _module(words: Sequence[str]) -> list[str] | None:
    """What `-m` names, with the words behind it."""
    for place, word in enumerate(words):
        if word == "-m" and place + 1 < len(words):
            return list(words[place + 1 :])
        if not word.startswith("-") and (place == 0 or words[place - 1] not in {"-X", "-W"}):
            return None
    return None


def _behind_options(words: Sequence[str]) -> list[str]:
    rest = list(words)
    while rest and (rest[0].startswith("-") or _VARIABLE.fullmatch(rest[0])):
        if rest[0] in {"-m", "--module"}:
            return rest[1:]
        width = 2 if rest[0] in _TAKES_VALUE else 1
        rest = rest[width:]
    return rest
