"""Whose name commits carry: the user's, as their own git has it, and never a clone's."""

import functools
import shlex
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import run
from lockgate.core.model.commits import Byline, Person
from lockgate.ports import Project

LATELY = 10.0  # seconds for which what git said is not asked again
_ASKED = ("config", "--null", "--get-regexp", r"^(user\.(name|email)|commit\.gpgsign)$")


class User(Struct, frozen=True):
    """Empty where the user's git has no name or address; `signs` where it signs every commit."""

    person: Person
    signs: bool


def user_of(project: Project) -> User:
    return _asked(project.common_dir, int(time.monotonic() / LATELY))


@functools.lru_cache(maxsize=64)
def _asked(common_dir: str, _moment: int) -> User:
    said = run(("git", f"--git-dir={common_dir}", *_ASKED)).out.split("\0")
    found = {key: value.strip() for key, _, value in (line.partition("\n") for line in said)}
    person = Person(found.get("user.name", ""), found.get("user.email", ""))
    return User(person, found.get("commit.gpgsign", "false").lower() in {"true", "yes", "on", "1"})


_ADD = "git interpret-trailers --in-place --if-exists addIfDifferent --trailer"


def add_hook(git_dir: Path, byline: Byline) -> None:
    """Commits that the agent makes in its clone get the trailers too; its author may leave them."""
    lines = list(_lines(byline.trailers))
    if not lines:
        return
    hook = git_dir / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("\n".join(("#!/bin/sh", *lines, "exit 0", "")), encoding="utf-8")
    hook.chmod(0o755)


def _lines(trailers: Iterable[str]) -> Iterable[str]:
    """A program that names its agent by itself, by the same address, is not repeated."""
    for trailer in trailers:
        key, _, person = trailer.partition(": ")
        address = shlex.quote(person[person.rfind("<") :])
        has = f'grep -i "^{key}:" "$1" | grep -qiF {address}'
        yield f'{has} || {_ADD} {shlex.quote(trailer)} "$1"'
