"""What a repository shows of itself, and what `init` proposes for each package of it."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.config.settings import ServiceKind
from lockgate.core.text.steering import matching


class Seen(Struct, frozen=True):
    """A command, and the file or entry that it was seen by."""

    command: str
    by: str


class Said(Struct, frozen=True):
    """A command that a CI definition runs, the file, and the directory that it runs in."""

    command: str
    by: str
    directory: str = ""


class Beside(Struct, frozen=True):
    """An image that CI or a compose file starts, the file, and the variables of who uses it."""

    image: str
    by: str
    variables: tuple[tuple[str, str], ...] = ()


class Needed(Struct, frozen=True):
    kind: ServiceKind
    by: str
    env: tuple[tuple[str, str], ...] = ()
    installed: bool = True


class Tree(Struct, frozen=True, kw_only=True):
    """The tracked files, the texts of those that say how it is built, and the programs here."""

    paths: frozenset[str]
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    said: tuple[Said, ...] = ()
    tools: frozenset[str] = frozenset()
    modules: tuple[str, ...] = ()  # submodules
    version: str = ""  # the last tag that looks like one
    beside: tuple[Beside, ...] = ()  # what CI and compose files start, CI's first

    def has(self, *names: str) -> tuple[str, ...]:
        """Those that are there."""
        return tuple(it for it in names if it in self.paths)

    def text(self, name: str) -> str:
        """Empty where it is not there or could not be read."""
        return self.texts.get(name, "")

    def toml(self, name: str) -> Mapping[str, Any]:
        return toml(self.text(name))

    def json(self, name: str) -> Mapping[str, Any]:
        try:
            return table({"": json.loads(self.text(name))}, "")
        except (ValueError, RecursionError):
            return {}

    def like(self, *patterns: str) -> tuple[str, ...]:
        """The files that a pattern names, in order."""
        return tuple(sorted(matching(self.paths, patterns)))

    def folder(self, name: str) -> bool:
        return any(it.startswith(f"{name}/") for it in self.paths)

    def below(self, folder: str) -> "Tree":
        """The same of one directory, as it is seen from there."""
        if not folder:
            return self
        start = f"{folder}/"
        return replace(
            self,
            paths=frozenset(it[len(start) :] for it in self.paths if it.startswith(start)),
            texts={k[len(start) :]: v for k, v in self.texts.items() if k.startswith(start)},
            said=tuple(_seen_from(self.said, folder)),
        )


def _seen_from(said: tuple[Said, ...], folder: str) -> Iterator[Said]:
    for it in said:
        if it.directory == folder:
            yield replace(it, directory="")
        elif it.command.startswith((f"cd {folder} &&", f"cd ./{folder} &&")):
            yield replace(it, command=it.command.partition("&&")[2].strip())


class Package(Struct, frozen=True, kw_only=True):
    """One directory that is set up and tested by itself; `path` is empty for the top.

    `adds` are packages that nothing else installs, and `adds_with` the command that does.
    """

    path: str = ""
    name: str = ""
    language: str = ""
    setup: Seen | None = None
    shared: bool = False  # it is set up at the top, for all packages of a workspace
    adds_with: str = ""
    adds: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    test: Seen | None = None
    typecheck: Seen | None = None
    recipe: str = ""  # what the test command runs, where it is a rule's name
    red: tuple[str, ...] = ()  # tests that fail on base, by their ids, and are left out
    needs: tuple[str, ...] = ()  # other packages' directories
    others: tuple[Seen, ...] = ()  # commands that may be meant instead
    notes: tuple[str, ...] = ()  # what was left out, and why

    @property
    def set_up(self) -> str:
        """The whole command; empty where nothing has to be installed."""
        setup = self.setup.command if self.setup else ""
        adds = f"{self.adds_with} {' '.join(quote(it) for it in self.adds)}" if self.adds else ""
        return " && ".join(filter(None, (setup, adds)))


class Plan(Struct, frozen=True):
    """What `init` would write; one package is what most repositories are."""

    packages: tuple[Package, ...]
    services: tuple[Needed, ...] = ()

    @property
    def only(self) -> Package | None:
        first, *others = self.packages
        return None if others or first.path else first


# A command that reports its tests one by one, which is what the differential gate compares.
_NAMES_TESTS = re.compile(
    r"--junit-?xml\b|\bgo test\b.* -json\b|--junitfile\b|--test-reporter[= ]junit\b"
    r"|\bjest-junit\b|--reporter[= ]junit\b"
    r"|\bpytest\b|\bpy\.test\b|\bunittest\b|\bxmlrunner\b"  # these are made to report by us
)


def names_tests(command: str, recipe: str = "") -> bool:
    """`recipe` is what a rule's name runs; one that sets Python's path would not load ours."""
    hidden = "unittest" in recipe and "PYTHONPATH" in recipe
    return not hidden and bool(_NAMES_TESTS.search(f"{command}\n{recipe}"))


def gate_name(kind: str, package: Package) -> str:
    """`tests` and `typecheck` at the top; `tests-api` for a package below it."""
    return f"{kind}-{package.name}" if package.path else kind


def at_top(package: Package, command: str) -> str:
    """As it is run from the top of the repository."""
    return f"cd {quote(package.path)} && {command}" if package.path else command


def set_up_of(plan: Plan) -> str:
    """One command for all packages."""
    each = dict.fromkeys(_placed(it) for it in plan.packages if it.set_up)
    return next(iter(each), "") if len(each) == 1 else " && ".join(f"({it})" for it in each)


def _placed(package: Package) -> str:
    return package.set_up if package.shared else at_top(package, package.set_up)


def remarks(tree: Tree) -> tuple[str, ...]:
    """What a checkout of ours does not have, though the user's may."""
    found: list[str] = []
    if tree.modules:
        names = ", ".join(tree.modules[:3])
        found.append(f"submodules are not checked out where gates run: {names}")
    if "filter=lfs" in tree.text(".gitattributes"):
        found.append("files of git-lfs are pointers where gates run, without their content")
    return tuple(found)


PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+=,%")


def quote(word: str) -> str:
    """For a shell; plain words stay as they are."""
    if word and set(word) <= PLAIN:
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def toml(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def table(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The table at the end of the keys; empty where there is none."""
    here: object = value
    for key in keys:
        here = cast("Mapping[str, object]", here).get(key) if isinstance(here, Mapping) else None
    return cast("Mapping[str, Any]", here) if isinstance(here, Mapping) else {}


def strings(value: object) -> tuple[str, ...]:
    """The strings of a list; those of a text's lines where it is one text."""
    if isinstance(value, str):
        return tuple(it.strip() for it in value.splitlines() if it.strip())
    if not isinstance(value, list):
        return ()
    return tuple(it for it in cast("list[object]", value) if isinstance(it, str))
