"""A virtual environment in a set-up layer: what acts on every test run, and what is a library.

It acts by being imported by the runner or a plug-in, by entry points, or as Python starts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from lockgate.core.layers.files import Layer, invoked
from lockgate.core.model.agents import WORKSPACE

# The modules of test runners, and of what tests say what they expect with.
RUNNERS = (
    *("pytest", "_pytest", "py", "xmlrunner", "unittest2", "nose", "nose2", "testtools"),
    *("mypy", "pyright", "coverage", "hypothesis", "hamcrest", "assertpy", "mock", "expects"),
)
AT_START = ("sitecustomize", "usercustomize", "_distutils_hack")
SCRIPTS = frozenset({"console_scripts", "gui_scripts"})
BYTECODE = re.compile(r"(?:.*/)?__pycache__/.*", re.DOTALL)  # never loaded without its source
_SITE = re.compile(r"lib(?:64)?/python[\d.]+t?/site-packages/")
_META = re.compile(r"(?P<name>[^/]+?)(?:-(?P<version>\d[^/]*?))?(?:-py[\d.]+)?\.(?:dist|egg)-info/")
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\w+)[\w.]*[ \t]+import|import[ \t]+([\w., \t]+))", re.MULTILINE
)
_BY_CALL = re.compile(r"(?:__import__|import_module|importorskip)\([ \t]*['\"](\w+)")
_REQUIRES = re.compile(r"^Requires-Dist:\s*([\w.-]+)([^\n]*)$", re.MULTILINE)
_FINDER = re.compile(r"__editable___\w+_finder\.py")
_FINDS = re.compile(r"import (__editable___\w+_finder); ?\1\.install\(\)")
_MAPPING = re.compile(r"^(?:MAPPING|NAMESPACES|PATH_PLACEHOLDER)\b[^\n]*$", re.MULTILINE)
_PLAIN = re.compile(r"[\w \t'\"/.:,\[\]{}=<>+-]*")  # a literal: nothing in it can be called
_DATA = ("share/", "include/", "man/", "etc/", "doc/")


class Plugin(Struct, frozen=True):
    """A distribution with entry points that are loaded without being asked for."""

    version: str
    groups: tuple[str, ...]
    lines: frozenset[str]
    modules: frozenset[str]  # at the top, that they name


Owners = Mapping[str, tuple[str, str]]  # module at the top of a site → its distribution, version


class Environments(Struct, frozen=True, kw_only=True):
    """All virtual environments of both layers."""

    base: Layer
    change: Layer
    programs: frozenset[str]  # what a new script must not be called
    prefixes: tuple[str, ...]
    closure: frozenset[str]  # modules at the top of a site that judge
    before: Mapping[str, Plugin]
    after: Mapping[str, Plugin]
    owners: tuple[Owners, Owners]  # base's and the change's

    def acts(self, path: str) -> str | None:
        """Why a file that differs judges; empty where it does not, None where it is not ours."""
        if path.endswith("-info/entry_points.txt"):
            return self._entry_points(path)
        prefix = next((it for it in self.prefixes if path.startswith(it)), None)
        if prefix is None:
            return None
        inside = path.removeprefix(prefix)
        site = _SITE.match(inside)
        if site:
            return self._in_site(path, inside[site.end() :])
        if inside.startswith("bin/"):
            return self._script(path, inside.removeprefix("bin/"))
        return "" if inside.startswith(_DATA) else f"it changes {path}"

    def _entry_points(self, path: str) -> str:
        name, version = distribution_of(path)
        old, new = self.before.get(name), self.after.get(name)
        if old and new and old.lines == new.lines:
            return ""
        plugin = new or old
        if plugin is None:
            return ""
        how = "changes the entry points of" if old and new else "adds" if new else "removes"
        groups = ", ".join(plugin.groups)
        return f"it {how} {name} {version or plugin.version} (entry points: {groups})"

    def _in_site(self, path: str, inside: str) -> str:
        if BYTECODE.fullmatch(path) or _META.match(inside):
            return ""
        top = inside.partition("/")[0]
        if top.endswith(".pth"):
            harmless = names_only_workspace(path, self.base, self.change)
            return "" if harmless else f"it changes what runs as Python starts: {top}"
        if _FINDER.fullmatch(top) and is_known_finder(path, self.base, self.change):
            return ""
        module = _module(top)
        if module in AT_START or _FINDER.fullmatch(top):
            return f"it changes what runs as Python starts: {top}"
        return self._told(module) if module in self.closure else ""

    def _script(self, path: str, name: str) -> str:
        if path in self.base.files and path in self.change.files:
            return f"it replaces {path}"
        new = path in self.change.files
        shadows = name in self.programs or name.startswith(("python", "activate"))
        return f"it adds {path}, which hides another program" if new and shadows else ""

    def _told(self, module: str) -> str:
        """By its distribution, with both versions where they differ."""
        old, new = (it.get(module) for it in self.owners)
        if old is None or new is None:
            known = old or new or (module, "")
            how = "adds" if new else "removes" if old else "changes"
            return f"it {how} {known[0]} {known[1]}".rstrip()
        by = f"{new[0]} {new[1]}" if old != new else "another of the same version"
        return f"it replaces {old[0]} {old[1]} by {by}"


def environments(
    base: Layer, change: Layer, commands: Sequence[str], programs: frozenset[str]
) -> Environments:
    marks = {path for it in (base, change) for path in it.files if path.endswith("pyvenv.cfg")}
    prefixes = tuple(sorted(it.removesuffix("pyvenv.cfg") for it in marks))
    before, after = plugins_of(base), plugins_of(change)
    words = invoked(commands)
    return Environments(
        base=base,
        change=change,
        programs=programs | words,
        prefixes=prefixes,
        closure=_closure(base, words, before),
        before=before,
        after=after,
        owners=(owners(base), owners(change)),
    )


def libraries_of(layer: Layer) -> dict[str, str]:
    """Distribution to version."""
    found = (_META.match(tail) for _, tail in _in_sites(layer))
    return {_plain(it["name"]): it["version"] or "" for it in found if it}


def closure_paths(it: Environments) -> tuple[str, ...]:
    """The files and folders of what judges, at the top of their sites, as base has them."""
    found = dict.fromkeys(
        f"{site}{tail.partition('/')[0]}"
        for site, tail in _in_sites(it.base)
        if _module(tail) in it.closure and not _META.match(tail)
    )
    return tuple(found)


def names_only_workspace(path: str, base: Layer, change: Layer) -> bool:
    """Of a .pth file as the change has it: it adds places of the workspace, or it is gone."""
    if path not in change.files:
        return all(_names_place(line) or _FINDS.fullmatch(line) for line in _lines(base, path))
    folder = path.rpartition("/")[0]
    for line in _lines(change, path):
        finds = _FINDS.fullmatch(line)
        finder = f"{folder}/{finds[1]}.py" if finds else ""
        if not _names_place(line) and not (finds and is_known_finder(finder, base, change)):
            return False
    return bool(change.text(path))


def is_known_finder(path: str, base: Layer, change: Layer) -> bool:
    """It is one that base has too, but for the places of packages, which are the workspace's."""
    if path not in change.files:
        return True
    text = change.text(path)
    told = _MAPPING.findall(text)
    places = re.findall(r"['\"](/[^'\"]*)", "\n".join(told))
    if not all(_PLAIN.fullmatch(it) for it in told) or not all(map(_names_place, places)):
        return False
    known = (it for it in base.files if _FINDER.fullmatch(it.rpartition("/")[2]))
    return any(_MAPPING.sub("", base.text(it)) == _MAPPING.sub("", text) for it in known)


def plugins_of(layer: Layer) -> dict[str, Plugin]:
    found: dict[str, Plugin] = {}
    for path in layer.files:
        if path.endswith("-info/entry_points.txt"):
            plugin = _plugin(path, layer.text(path))
            if plugin.groups:
                found[distribution_of(path)[0]] = plugin
    return found


def distribution_of(path: str) -> tuple[str, str]:
    """Name and version of the metadata folder that a file lies in."""
    folder = path.rpartition("/")[0].rpartition("/")[2]
    found = _META.match(f"{folder}/")
    return (_plain(found["name"]), found["version"] or "") if found else (folder, "")


def owners(layer: Layer) -> dict[str, tuple[str, str]]:
    """Module at the top of a site to the distribution that brings it, and its version."""
    found: dict[str, tuple[str, str]] = {}
    for path in layer.files:
        if path.endswith((".dist-info/RECORD", ".egg-info/top_level.txt")):
            for line in layer.text(path).splitlines():
                found.setdefault(_module(line.partition(",")[0]), distribution_of(path))
    return {module: found.get(module, (module, "")) for module in _tops(layer)}


def _closure(base: Layer, words: frozenset[str], plugins: Mapping[str, Plugin]) -> frozenset[str]:
    """The runner and the plug-ins, what these import, and what all of them say that they need."""
    scripts = {it for path in base.files for it in _started(path, base, words)}
    loaded = {module for it in plugins.values() for module in it.modules}
    roots = {*RUNNERS, *words, *scripts, *loaded}
    brought: dict[str, set[str]] = {}
    for module, (name, _) in owners(base).items():
        brought.setdefault(name, set()).add(module)
    names = {it for name in plugins for it in brought.get(name, ())}
    imported = set(_imported(base, roots | names))
    direct = {*AT_START, *roots, *names, *imported}
    return frozenset(direct | _needed(base, brought, direct))


def _started(path: str, base: Layer, words: frozenset[str]) -> Iterator[str]:
    """The modules behind the scripts that commands start."""
    if path.endswith("-info/entry_points.txt"):
        for line in base.text(path).splitlines():
            name, _, place = line.replace(" ", "").partition("=")
            if name in words:
                yield place.partition(":")[0].partition(".")[0]


def _needed(base: Layer, brought: Mapping[str, set[str]], roots: set[str]) -> set[str]:
    """By the distributions' own words, as far as that goes."""
    wants = {
        distribution_of(path)[0]: tuple(_requirements(base.text(path)))
        for path in base.files
        if path.endswith((".dist-info/METADATA", ".egg-info/PKG-INFO"))
    }
    left = [name for name, modules in brought.items() if modules & roots]
    seen, found = set[str](), set[str]()
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            found |= brought.get(name, set())
            left += wants.get(name, ())
    return found


def _requirements(metadata: str) -> Iterator[str]:
    for name, rest in _REQUIRES.findall(metadata):
        if "extra" not in rest:
            yield _plain(name)


def _imported(layer: Layer, modules: set[str]) -> Iterator[str]:
    """Names at the top that the sources of these modules import, wherever they do."""
    for site, tail in _in_sites(layer):
        starts = tail.endswith(".pth")
        if starts or (tail.endswith(".py") and _module(tail) in modules):
            text = layer.text(f"{site}{tail}")
            yield from _BY_CALL.findall(text)
            for one, many in _IMPORT.findall(text):
                names = (one,) if one else many.split(",")
                yield from (it.strip().partition(".")[0].partition(" ")[0] for it in names)


def _in_sites(layer: Layer) -> Iterator[tuple[str, str]]:
    for path in layer.files:
        before, found, tail = path.partition("/site-packages/")
        if found and not BYTECODE.fullmatch(path):
            yield f"{before}{found}", tail


def _tops(layer: Layer) -> set[str]:
    return {_module(tail) for _, tail in _in_sites(layer)}


def _module(tail: str) -> str:
    """At the top of a site, of a path in it."""
    return tail.partition("/")[0].partition(".")[0]


def _plugin(path: str, text: str) -> Plugin:
    group, kept = "", dict[str, str]()
    for line in (it.strip() for it in text.splitlines()):
        if line.startswith("["):
            group = line.strip("[] ")
        elif line and not line.startswith(("#", ";")) and group not in SCRIPTS:
            kept[line.replace(" ", "")] = group
    modules = (line.partition("=")[2].partition(":")[0].partition(".")[0] for line in kept)
    return Plugin(
        version=distribution_of(path)[1],
        groups=tuple(dict.fromkeys(kept.values())),
        lines=frozenset(f"{group}: {line}" for line, group in kept.items()),
        modules=frozenset(modules),
    )


def _names_place(line: str) -> bool:
    inside = line == WORKSPACE or line.startswith(f"{WORKSPACE}/")
    return inside and ".." not in line.split("/")


def _lines(layer: Layer, path: str) -> Iterable[str]:
    lines = (it.strip() for it in layer.text(path).splitlines())
    return [it for it in lines if it and not it.startswith("#")]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
