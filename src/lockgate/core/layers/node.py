"""A node_modules folder in a set-up layer: the test runner with all that it depends on."""

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from msgspec import Struct

from lockgate.core.layers.files import LINK, Layer, invoked

MODULES = "node_modules/"
RUNNERS = (
    *("jest", "vitest", "mocha", "ava", "tap", "jasmine", "karma", "cypress", "@playwright/test"),
    *("c8", "nyc", "typescript", "ts-node", "tsx", "chai", "sinon", "expect", "jest-junit"),
    *("mocha-junit-reporter", "cross-env"),
)
# Settings that name what a runner loads; as base and as the change has them.
SETTINGS = (
    *("**/package.json", "**/jest.config.*", "**/vitest.config.*", "**/vite.config.*"),
    *("**/babel.config.*", "**/.babelrc*", "**/.mocharc*", "**/ava.config.*", "**/.swcrc"),
)
_DEPENDS = ("dependencies", "optionalDependencies", "peerDependencies")
# Keys of package.json that say how tests are run.
_RUN_BY = ("scripts", "jest", "vitest", "mocha", "ava", "tap", "c8", "nyc", "babel")
# What package managers note for themselves.
_NOTES = frozenset(
    {
        *(".package-lock.json", ".modules.yaml", ".yarn-integrity", ".yarn-state.yml"),
        *(".pnpm-workspace-state.json", ".pnpm-workspace-state-v1.json"),
    }
)
_PACKAGE = re.compile(r"(?:.*/)?node_modules/(?:@[^/.][^/]*/)?[^@/.][^/]*", re.DOTALL)
_QUOTED = re.compile(r"""['"`](@?[\w][\w./-]*)['"`]""")


class Indexed(Struct, frozen=True):
    layer: Layer
    packages: Mapping[str, Mapping[str, str]]  # folder → its files, without what is nested in it


class Modules(Struct, frozen=True):
    """All node_modules folders of both layers."""

    base: Layer
    change: Layer
    programs: frozenset[str]
    judging: tuple[str, ...]  # how the runner and what it depends on differ, in words

    def acts(self, path: str) -> str | None:
        """Why a file that differs judges; empty where it does not, None where it is not ours."""
        before, found, inside = path.rpartition(MODULES)
        if not found or (before and not before.endswith("/")):
            return None
        if inside.startswith(".bin/"):
            return self._program(path, inside.removeprefix(".bin/"))
        known = inside in _NOTES or ".pnpm/" in before or inside == ".pnpm/lock.yaml"
        return f"it changes {path}" if inside.startswith(".") and not known else ""

    def _program(self, path: str, name: str) -> str:
        if path in self.base.files and path in self.change.files:
            return f"it replaces {path}"
        if path in self.change.files and name in self.programs:
            return f"it adds {path}, which hides another program"
        return ""


def modules(
    base: Layer,
    change: Layer,
    commands: Sequence[str],
    programs: frozenset[str],
    settings: Sequence[tuple[str, str]],
) -> Modules:
    """`settings` are paths with their texts, of both sides."""
    words = invoked(commands)
    tops = sorted({it for layer in (base, change) for it in _tops(layer)})
    names = {*RUNNERS, *words, *_mentioned(settings), *_behind(base, words)}
    roots = [(top, name) for top in tops for name in sorted(names)]
    apart = _apart(_indexed(base), _indexed(change), roots)
    return Modules(base, change, programs | words, tuple(dict.fromkeys(apart)))


def libraries_of(layer: Layer) -> dict[str, str]:
    """Package to version, of those that lie at the top of a node_modules folder."""
    found: dict[str, str] = {}
    for path, it in layer.files.items():
        folder = path.removesuffix("/package.json")
        there = folder != path or it.startswith(LINK)
        if there and folder.count(MODULES) == 1 and _PACKAGE.fullmatch(folder):
            top, _, name = folder.partition(MODULES)
            real = _resolved(layer, top.removesuffix("/"), name)
            found[name] = str(_read(layer, real).get("version", ""))
    return found


def _indexed(layer: Layer) -> Indexed:
    found: dict[str, dict[str, str]] = {}
    for path, it in layer.files.items():
        before, there, inside = path.rpartition(MODULES)
        if there:
            parts = inside.split("/")
            size = 2 if inside.startswith("@") else 1
            folder = f"{before}{there}{'/'.join(parts[:size])}"
            found.setdefault(folder, {})["/".join(parts[size:])] = it
    return Indexed(layer, found)


def _apart(base: Indexed, change: Indexed, roots: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Each package of the closure is compared with what has its place in the other layer."""
    left = [(top, top, name) for top, name in roots]
    seen = set[tuple[str, str]]()
    while left:
        ours, theirs, name = left.pop()
        old, new = _resolved(base.layer, ours, name), _resolved(change.layer, theirs, name)
        if (old, new) in seen or (old is None and new is None):
            continue
        seen.add((old or "", new or ""))
        if base.packages.get(old or "") != change.packages.get(new or ""):
            yield _told(base.layer, change.layer, (name, old, new))
        needs = {*_needs(base.layer, old), *_needs(change.layer, new)}
        left += [(old or ours, new or theirs, it) for it in sorted(needs)]


def _told(base: Layer, change: Layer, package: tuple[str, str | None, str | None]) -> str:
    name, old, new = package
    if old is None or new is None:
        there, layer = (new, change) if old is None else (old, base)
        version = _read(layer, there).get("version", "")
        return f"it {'adds' if old is None else 'removes'} {name} {version}".rstrip()
    before, after = (_read(*it).get("version", "") for it in ((base, old), (change, new)))
    link = change.files.get(new, "")
    if link.startswith(LINK):
        return f"it replaces {name} {before} by a link to {link.removeprefix(LINK)}"
    return f"it replaces {name} {before}" + (f" by {after}" if before != after else " by another")


def _resolved(layer: Layer, folder: str, name: str) -> str | None:
    """The folder that node finds a package in, from another one; a link out of the layer itself."""
    while True:
        place = posixpath.join(folder, MODULES + name)
        link = layer.files.get(place, "")
        if link.startswith(LINK):
            real = posixpath.normpath(posixpath.join(place, "..", link.removeprefix(LINK)))
            return real if f"{real}/package.json" in layer.files else place
        if f"{place}/package.json" in layer.files:
            return place
        if not folder:
            return None
        folder = folder.rpartition("/")[0]


def _needs(layer: Layer, folder: str | None) -> Iterator[str]:
    found = _read(layer, folder)
    for key in _DEPENDS:
        listed = found.get(key)
        if isinstance(listed, dict):
            yield from cast("dict[str, object]", listed)


def _read(layer: Layer, folder: str | None) -> Mapping[str, object]:
    return _object(layer.text(f"{folder}/package.json"))


def _object(text: str) -> dict[str, object]:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _tops(layer: Layer) -> Iterator[str]:
    """The folders that have a node_modules folder which lies in no other."""
    for path in layer.files:
        before, found, _ = path.partition(MODULES)
        if found and (not before or before.endswith("/")):
            yield before.removesuffix("/")


def _behind(layer: Layer, words: frozenset[str]) -> Iterator[str]:
    """The packages of programs that commands start."""
    for path, it in layer.files.items():
        _, found, name = path.rpartition(f"{MODULES}.bin/")
        if found and name in words and it.startswith(f"{LINK}../"):
            parts = it.removeprefix(f"{LINK}../").split("/")
            yield "/".join(parts[: 2 if parts[0].startswith("@") else 1])


def _mentioned(settings: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Packages that settings of a runner name."""
    for path, text in settings:
        found = text
        if path.endswith("package.json"):
            kept = {key: it for key, it in _object(text).items() if key in _RUN_BY}
            found = json.dumps(kept).replace(" ", '" "')
        for name in _QUOTED.findall(found):
            parts = name.split("/")
            yield "/".join(parts[: 2 if name.startswith("@") else 1])
