"""The files that steer agents, editors, hooks and CI, and whose version of them a reviewer sees.

Also which paths a pattern names: `*` within a directory, `**` over any number of them.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from msgspec import Struct

from lockgate.core.model.gates import CommandGate, DifferentialGate, Gate
from lockgate.core.model.task import Pinned, Task

MOST_FILES = 5_000  # of a change, that are compared with `paths`
# What agents' programs load by themselves, in any folder.
_AGENTS = (
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".agents",
    ".claude",
    ".codex",
    ".gemini",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".mcp.json",
    ".cursor",
    ".cursorrules",
    ".aider*",
)
# What editors, shells and git run when somebody opens, enters or commits; in any folder.
_EDITORS_AND_HOOKS = (
    ".vscode",
    "*.code-workspace",
    ".idea",
    ".devcontainer",
    ".devcontainer.json",
    ".envrc",
    ".husky",
    ".githooks",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook.toml",
    "lefthook.json",
    ".lefthook.yml",
    ".lefthook.yaml",
    "lefthook-local.yml",
    ".gitmodules",
    "Jenkinsfile",
)
# CI definitions, which count at the top of the repository alone.
_CI = (
    ".github",
    ".gitlab-ci.yml",
    ".gitlab",
    ".circleci",
    ".buildkite",
    "azure-pipelines.yml",
    "azure-pipelines.yaml",
    ".azure-pipelines",
    ".travis.yml",
    "appveyor.yml",
    ".appveyor.yml",
    "bitbucket-pipelines.yml",
    ".drone.yml",
    ".woodpecker",
    ".woodpecker.yml",
    ".woodpecker.yaml",
    ".cirrus.yml",
    ".semaphore",
    ".teamcity",
    ".gitea",
    ".forgejo",
    "cloudbuild.yaml",
    "cloudbuild.yml",
    "buildspec.yml",
)


# Which paths a pattern names.


def matching(paths: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if any(_regex(it).fullmatch(path) for it in patterns))


def touched(gate: Gate, gates: Sequence[Gate], files: Sequence[str]) -> bool:
    """Whether a change of these files is for the gate, by its `paths`.

    A file that no command gate names by its `paths` is for all of them: a shared file, such as a
    lock file at the top, may break any package. So is a change of no file, or of too many.
    """
    if not gate.place.paths or not files or len(files) > MOST_FILES:
        return True
    if matching(files, gate.place.paths):
        return True
    others = (it for it in gates if isinstance(it, CommandGate | DifferentialGate))
    named = [path for it in others if not it.place.when for path in it.place.paths]
    return len(matching(files, named)) < len(files)


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    """`docs/**` names everything below docs; `**/conftest.py` one at the top as well."""
    parts: list[str] = []
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        match piece:
            case "**/":
                parts.append("(?:[^/]+/)*")
            case "**":
                parts.append(".*")
            case "*":
                parts.append("[^/]*")
            case "?":
                parts.append("[^/]")
            case text:
                parts.append(re.escape(text))
    return re.compile("".join(parts), re.DOTALL)


# The files that steer.


def _pattern(anywhere: Iterable[str], at_the_top: Iterable[str]) -> re.Pattern[str]:
    """A file or link of such a name, and all below a directory of it, whatever the case."""
    names, tops = (
        "|".join(re.escape(it).replace(r"\*", "[^/]*") for it in them)
        for them in (anywhere, at_the_top)
    )
    return re.compile(rf"(?:(?:[^/]+/)*(?:{names})|{tops})(?:/.*)?", re.IGNORECASE | re.DOTALL)


_STEERING = _pattern((*_AGENTS, *_EDITORS_AND_HOOKS), _CI)
# Of these a reviewer gets base's. aider reads `.env`; `.lockgate` may hold agents' scripts.
_INSTRUCTIONS = _pattern((*_AGENTS, ".env"), (".lockgate", ".github/copilot-instructions.md"))
# Lockgate writes these into a reviewer's directory; those of a change would hide them.
_OURS = re.compile(r"(?:TASK\.md|task\.json)(?:/.*)?", re.DOTALL)

NAMED = 5  # files that a line names
LINK = "120000 "
DEEPEST = 5  # how often an imported file may import, or a link may lead to, another one
_IMPORTS = re.compile(r"(?:\A|/)(?:AGENTS|CLAUDE|GEMINI)[^/]*\.md\Z", re.IGNORECASE)
_IMPORT = re.compile(r"(?<![^\s(\[])@([\w./-]+)")
_PROSE = (".md", ".mdc", ".rst", ".txt")

Blobs = Mapping[str, str]  # path → mode and id of its blob, with a space between
Text = Callable[[str], str]  # what a blob, given as mode and id, holds


class Swapped(Struct, frozen=True):
    """How a reviewer's files differ from the change: paths that go, and base's entries by path."""

    gone: tuple[str, ...]
    base: Mapping[str, str]


def steering(files: Iterable[str]) -> tuple[str, ...]:
    """Those of the files that steer agents, editors, hooks or CI, whatever their case."""
    return tuple(path for path in files if _STEERING.fullmatch(path))


def shown_first(files: Sequence[str], rules: Pinned) -> tuple[str, ...]:
    """What a human sees first of a change: protected files, and those that steer."""
    wanted = {*matching(files, rules.protect), *steering(files)}
    return tuple(path for path in files if path in wanted)


def asked_of(shown: Sequence[str], rules: Pinned | None) -> tuple[str, ...]:
    """Those of the files shown first for which a human gate is added.

    Where a human approves every landing, one yes is enough for a file that only steers.
    """
    if rules is None:
        return ()
    if rules.lands_alone:
        return tuple(shown)
    only_steer = frozenset(steering(shown)) - frozenset(matching(shown, rules.protect))
    return tuple(path for path in shown if path not in only_steer)


def unseen(task: Task) -> tuple[str, ...]:
    """The steering files of a change that no human has said yes to."""
    seen = task.to_land or any(yes.patch == task.patch for yes in task.approvals)
    return () if seen else steering(task.protected)


def told_of(files: Sequence[str]) -> str:
    """Of steering files, in a few words."""
    names = [*files[:NAMED], *([f"{len(files) - NAMED} more"] if len(files) > NAMED else [])]
    return f"it changes what steers agents, editors, hooks or CI: {', '.join(names)}"


def swapped(base: Blobs, change: Blobs, text: Text, named: Iterable[str] = ()) -> Swapped:
    """Base's instruction files in place of the change's.

    `named` are more paths, such as the program of a reviewer's agent. What base's files import
    (`@docs/rules.md`) or link to comes from base as well, or is not there if base has none.
    """
    names = _names(base, text, {posixpath.normpath(name) for name in named})
    ours = {path for path in base if _is_of(path, names) and not _OURS.fullmatch(path)}
    blocking = {parent for path in ours for parent in _parents(path)}
    theirs = {
        path
        for path in change
        if _INSTRUCTIONS.fullmatch(path)
        or _OURS.fullmatch(path)
        or path in blocking
        or _is_of(path, names)
    }
    same = {path for path in theirs & ours if change[path] == base[path]}
    return Swapped(
        gone=tuple(sorted(theirs - same)),
        base={path: base[path] for path in sorted(ours - same)},
    )


def _names(base: Blobs, text: Text, named: set[str]) -> set[str]:
    """Base's instruction files, and every path that one of these imports or links to."""
    new = {path for path in base if _INSTRUCTIONS.fullmatch(path)}
    found = named | new
    for _ in range(DEEPEST):
        new = {it for path in new for it in _references(path, base, text)} - found
        found |= new
    return found


def _references(path: str, base: Blobs, text: Text) -> Iterator[str]:
    """From the top of the repository: links on the way, where a link leads, what prose imports."""
    yield from (parent for parent in _parents(path) if parent in base)
    folder, blob = posixpath.dirname(path), base.get(path, "")
    if blob.startswith(LINK):
        yield posixpath.normpath(posixpath.join(folder, text(blob)))
    elif blob and (_IMPORTS.search(path) or not _INSTRUCTIONS.fullmatch(path)):
        for name in _IMPORT.findall(text(blob)):
            to = posixpath.normpath(posixpath.join(folder, name.rstrip(".")))
            if to.lower().endswith(_PROSE):
                yield to


def _is_of(path: str, names: set[str]) -> bool:
    """Whether it is one of them, or lies in a directory that is one of them."""
    return path in names or any(parent in names for parent in _parents(path))


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
