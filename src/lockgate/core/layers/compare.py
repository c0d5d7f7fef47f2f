"""A change's set-up layer beside base's: what of the difference judges, and what is only used.

What differs judges, unless it is known not to: a library outside of what runs the tests, what
describes it, bytecode, the places of the workspace's own packages.
"""

import re
from fnmatch import fnmatchcase

from msgspec import Struct

from lockgate.core.layers import node, python
from lockgate.core.layers.files import Layer, differing
from lockgate.core.layers.inputs import LOCKS
from lockgate.core.model.brought import Brought

_GO_MODULES, _CARGO = "cache/download/", "registry/"
# What Go tests say what they expect with, and the toolchain that runs them.
_JUDGES_GO = (
    *("golang.org/toolchain@", "github.com/stretchr/testify@", "github.com/google/go-cmp@"),
    *("gotest.tools/", "github.com/onsi/"),
)
_KEPT_BY_CARGO = (".package-cache", ".package-cache-mutate", ".global-cache", "CACHEDIR.TAG")
_BUILT = re.compile(r"(?:.*/)?(?:[^/]+\.egg-info|build)/.*", re.DOTALL)


class Surroundings(Struct, frozen=True, kw_only=True):
    """Beside the layers: what judges run, what programs there are, the settings of both sides."""

    inputs: tuple[str, ...]
    commands: tuple[str, ...]
    programs: frozenset[str] = frozenset()
    settings: tuple[tuple[str, str], ...] = ()  # paths and texts


def compared(base: Layer, change: Layer, beside: Surroundings) -> Brought:
    venvs = python.environments(base, change, beside.commands, beside.programs)
    modules = node.modules(base, change, beside.commands, beside.programs, beside.settings)
    found = dict.fromkeys(modules.judging)
    caches = Caches(_marked(base, _GO_MODULES), _marked(base, _CARGO))
    for path in differing(base, change):
        kinds = (venvs.acts(path), modules.acts(path), caches.acts(path))
        why = next((it for it in kinds if it is not None), f"it leaves {path}")
        found |= {why: None} if why else {}
    return Brought(
        inputs=beside.inputs,
        judging=tuple(found),
        libraries=tuple(_libraries(base, change)),
        bases=() if found else python.closure_paths(venvs),
        drop=tuple(_bytecode(change, venvs)),
    )


class Caches(Struct, frozen=True):
    """Go modules, crates and what builds leave; a folder of the first two is one on base too."""

    go: frozenset[str]
    cargo: frozenset[str]

    def acts(self, path: str) -> str | None:
        top, _, inside = path.partition("/")
        if top in self.go:
            plain = inside.removeprefix(_GO_MODULES)
            judges = plain.startswith(_JUDGES_GO)
            return f"it changes {plain.partition('@')[0]}" if judges else ""
        if top in self.cargo:
            known = inside.startswith((_CARGO, "git/")) or inside in _KEPT_BY_CARGO
            return "" if known else f"it changes {path}"
        lock = any(fnmatchcase(path.rpartition("/")[2], it) for it in LOCKS)
        harmless = lock or _BUILT.fullmatch(path) or python.BYTECODE.fullmatch(path)
        return "" if harmless else None


def _marked(layer: Layer, mark: str) -> frozenset[str]:
    """The folders at the top that have this one in them."""
    parts = (path.partition("/") for path in layer.files)
    return frozenset(top for top, _, inside in parts if inside.startswith(mark))


def _bytecode(change: Layer, venvs: python.Environments) -> list[str]:
    """Outside of libraries, and of modules at the top of a site, which base may have too."""
    return [
        path
        for path in change.files
        if python.BYTECODE.fullmatch(path)
        and (not path.startswith(venvs.prefixes) or "/site-packages/__pycache__/" in path)
    ]


def _libraries(base: Layer, change: Layer) -> list[str]:
    """Each that came, went or has another version."""
    said: list[str] = []
    for read in (python.libraries_of, node.libraries_of):
        old, new = read(base), read(change)
        for name in sorted({*old, *new}):
            if name not in old:
                said.append(f"adds {name} {new[name]}".rstrip())
            elif name not in new:
                said.append(f"removes {name} {old[name]}".rstrip())
            elif old[name] != new[name]:
                said.append(f"{name} {old[name]} → {new[name]}")
    return said
