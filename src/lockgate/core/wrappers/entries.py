"""What a gate's command resolves to in a repository: scripts, targets, package scripts, sections.

`entries` follows them from one to the next, in texts alone. An entry is the part that matters, not
its file: a new target in a Makefile is no change of the others. What is not seen stands in
docs/gates.md.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from lockgate.core.wrappers import sections
from lockgate.core.wrappers.makefiles import (
    JUSTFILES,
    MAKEFILES,
    Book,
    Read,
    expanded,
    justfile,
    makefile,
)
from lockgate.core.wrappers.shell import (
    ENDINGS,
    FILES,
    INTERPRETERS,
    LAUNCHERS,
    MANAGERS,
    PACKAGE,
    PACKAGE_KEYS,
    PYTEST_INI,
    PYTEST_TOML,
    RESERVED,
    SHELLS,
    TOML_TOOLS,
    TOX_INI,
    Command,
    commands_in,
    quoted_in,
    without_options,
)

MOST = 300  # entries
THERE = "it is there"
DEEPEST = 12  # that name each other
CHARACTERS = 2_000_000  # of shell that are read
_TAKE_VALUE = frozenset(
    {"-o", "+o", "--rcfile", "--init-file", "-r", "--require", "--import", "-W", "-X", "-I"}
)
_ASSIGNS = re.compile(r"[A-Za-z_]\w*\+?=")
_SETS = re.compile(r"[-+][a-z]*o")  # bash -euo pipefail
_SCRIPT_ENDINGS = (".sh", ".bash", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl")


class Kind(StrEnum):
    FILE = "file"  # all of it
    TARGET = "target"  # of a Makefile or justfile
    SCRIPT = "script"  # of a package.json
    KEY = "key"  # of a package.json
    SECTION = "section"  # of an ini or TOML file
    PLACE = "place"  # a file or directory that keeps make from a target of its name


class Entry(Struct, frozen=True, kw_only=True):
    name: str
    path: str
    kind: Kind
    text: str
    part: tuple[str, ...] = ()  # which script, key or sections


def entries(command: str, read: Read) -> tuple[Entry, ...]:
    """`read` gives a path's text, None where there is no such file."""
    walk = _Walk(read)
    walk.shell(command, ("",), 0)
    return tuple(walk.found.values())


def commands_behind(command: str, read: Read) -> tuple[str, ...]:
    """The recipes, sections and shell scripts that a command comes to."""
    return tuple(
        it.text
        for it in entries(command, read)
        if it.kind in {Kind.TARGET, Kind.SECTION} or it.path.endswith((".sh", ".bash"))
    )


Places = tuple[str, ...]  # directories that a word may be meant from; the first is the likeliest


class _Walk(Struct):
    read: Read
    found: dict[tuple[str, str], Entry] = field(default_factory=dict[tuple[str, str], Entry])
    _left: int = CHARACTERS
    _seen: set[tuple[str, Places]] = field(default_factory=set[tuple[str, Places]])

    def shell(self, text: str, where: Places, depth: int) -> None:
        """Every command of a shell text, with `cd` followed where it is plain."""
        self._left -= len(text)
        if depth > DEEPEST or (text, where) in self._seen or self._left < 0:
            return
        self._seen.add((text, where))
        stack = [where]
        for it in commands_in(text):
            while len(stack) <= it.depth:
                stack.append(stack[-1])
            del stack[it.depth + 1 :]
            stack[-1] = self._command(it, stack[-1], depth)

    def _command(self, it: Command, where: Places, depth: int) -> Places:
        """Where the next command is run."""
        for tool in {_base(word) for word in it.words} & TOML_TOOLS.keys():
            self._toml(posixpath.join(where[0], "pyproject.toml"), TOML_TOOLS[tool])
        words = self._launched(it.words, where)
        name, rest = (_base(words[0]), words[1:]) if words else ("", ())
        if name in {"cd", "pushd"}:
            return self._moved(rest, where)
        if name in SHELLS and not [*without_options(rest, _TAKE_VALUE)]:
            for path in self._paths(it.given, where):
                self._file(path, where, depth, sourced=True)
        elif words:
            self._program(name, words, where, depth)
        return where

    def _launched(self, words: tuple[str, ...], where: Places) -> tuple[str, ...]:
        """Without assignments, reserved words and what only starts another command."""
        while words and (_ASSIGNS.match(words[0]) or words[0] in RESERVED):
            words = words[1:]
        if not words or _base(words[0]) not in LAUNCHERS:
            return words
        rest = words[1:]
        known = (at for at, it in enumerate(rest) if self._is_program(it, where))
        at = next(known, None)
        return () if at is None else self._launched(rest[at:], where)

    def _is_program(self, word: str, where: Places) -> bool:
        name = _base(word)
        if name in PROGRAMS or name in FILES or name in LAUNCHERS or INTERPRETERS.fullmatch(name):
            return True
        pathlike = "/" in word or word.endswith(_SCRIPT_ENDINGS)
        return pathlike and any(True for _ in self._paths((word,), where))

    def _program(self, name: str, words: tuple[str, ...], where: Places, depth: int) -> None:
        rest = words[1:]
        follow = PROGRAMS.get(name)
        if "/" in words[0] or words[0].endswith(_SCRIPT_ENDINGS):
            for path in self._paths(words[:1], where):
                self._file(path, where, depth, sourced=False)
        if follow is not None:
            follow(self, rest, where, depth)
        elif name in FILES:
            self._tool(name, where)
        elif INTERPRETERS.fullmatch(name):
            self._interpreted(rest, where, depth)

    # --- scripts --------------------------------------------------------------------------------

    def in_shell(self, rest: tuple[str, ...], where: Places, depth: int) -> None:
        """`sh -c TEXT`, or `sh FILE`."""
        for at, word in enumerate(rest):
            if re.fullmatch(r"-[a-z]*c", word):
                self.shell(" ".join(rest[at + 1 : at + 2]), where, depth + 1)
                return
        kept = [it for at, it in enumerate(rest) if not at or not _SETS.fullmatch(rest[at - 1])]
        self.sourced([*without_options(kept, _TAKE_VALUE)][:1], where, depth)

    def sourced(self, rest: Sequence[str], where: Places, depth: int) -> None:
        for path in self._paths(rest[:1], where):
            self._file(path, where, depth, sourced=True)

    def evaluated(self, rest: tuple[str, ...], where: Places, depth: int) -> None:
        self.shell(" ".join(rest), where, depth + 1)

    def _interpreted(self, rest: tuple[str, ...], where: Places, depth: int) -> None:
        if "-m" in rest[:-1]:
            at = rest.index("-m") + 1
            self._module(rest[at], rest[at + 1 :], where, depth)
            return
        if "--test" in rest or "-c" in rest or "-e" in rest:
            return
        valued = [it for at, it in enumerate(rest) if at and rest[at - 1] in _TAKE_VALUE]
        for path in self._paths((*[*without_options(rest, _TAKE_VALUE)][:1], *valued), where):
            self._file(path, where, depth, sourced=False)

    def _module(self, name: str, rest: tuple[str, ...], where: Places, depth: int) -> None:
        """One of the repository comes before one that is installed."""
        path = name.replace(".", "/")
        for found in self._paths((f"{path}.py", f"{path}/__main__.py"), where):
            self._file(found, where, depth, sourced=False)
        if name in PROGRAMS or name in FILES or name in LAUNCHERS:
            self._command(Command((name, *rest)), where, depth)

    def _file(self, path: str, where: Places, depth: int, *, sourced: bool) -> None:
        text = self.read(path)
        if text is None or depth > DEEPEST or not self._add(Kind.FILE, path, path, text):
            return
        first = text.split("\n", 1)[0]
        bare = not first.startswith("#!") and not posixpath.splitext(path)[1]
        around = tuple(dict.fromkeys((*where, posixpath.dirname(path), "")))
        if sourced or path.endswith((".sh", ".bash")) or bare or _is_shells(first):
            self.shell(text, around, depth + 1)
            return
        for named in self._paths(tuple(quoted_in(text, r"\.(?:sh|bash)")), around):
            self._file(named, around, depth + 1, sourced=True)

    # --- make and just --------------------------------------------------------------------------

    def made(self, rest: tuple[str, ...], where: Places, depth: int) -> None:
        named = [_value(rest, "-f", "--file", "--makefile")]
        where = self._moved((_value(rest, "-C", "--directory"),), where)
        valued = frozenset({"-f", "--file", "--makefile", "-C", "--directory", "-j", "-I", "-o"})
        words = [*without_options(rest, valued)]
        goals = [it for it in words if not _ASSIGNS.match(it) and not it.isdigit()]
        path = self._first([it for it in named if it] or MAKEFILES, where)
        if path:
            directory = where[0]
            self._book("make", makefile(path, directory, self.read), goals, (directory,), depth)

    def just(self, rest: tuple[str, ...], where: Places, depth: int) -> None:
        named = _value(rest, "-f", "--justfile")
        path = self._first([named] if named else JUSTFILES, where)
        if path:
            words = [*without_options(rest, frozenset({"-f", "--justfile", "--set"}))]
            goals = [it for it in words if not _ASSIGNS.match(it)]
            directory = posixpath.dirname(path)
            self._book("just", justfile(path, self.read), goals, (directory,), depth)

    def _book(self, tool: str, book: Book, goals: Sequence[str], where: Places, depth: int) -> None:
        if book.too_big:
            self._whole(book.files)
            return
        targets, variables = book.reached(goals)
        phony = book.phony
        for it in variables:
            self._joined(Kind.TARGET, f"{tool} variable {it.name}", it.path, it.text)
        for it in targets:
            how = "phony: " if it.name in phony else ""
            self._joined(Kind.TARGET, f"{tool} {it.name}", it.path, f"{how}{it.text}")
            if tool == "make" and not how:
                self._place(_joined(where[0], it.name))
            script = it.recipe[:1] and it.recipe[0].startswith("#!")
            lines = ("\n".join(it.recipe),) if script else it.recipe
            for line in lines:
                told = expanded(line.lstrip("@-+ "), {"MAKE": "make", **book.values})
                self.shell(told, where, depth + 1)

    def _place(self, path: str) -> None:
        for it in (path, f"{path}/"):
            if path and self.read(it) is not None:
                self._add(Kind.PLACE, it, it, THERE)

    def _joined(self, kind: Kind, name: str, path: str, text: str) -> None:
        """A target or variable that is written in several places is one entry."""
        known = self.found.get((path, name))
        if known is None:
            self._add(kind, name, path, text)
        elif text not in known.text.split("\0"):
            self.found[path, name] = Entry(
                name=name, path=path, kind=kind, text=f"{known.text}\0{text}"
            )

    # --- packages -------------------------------------------------------------------------------

    def packaged(self, rest: tuple[str, ...], where: Places, depth: int) -> None:
        """`npm test`, `npm run x`, `yarn x`; what is no script is a program of a package."""
        moved = _value(rest, "--prefix", "-C", "--cwd", "--dir", "-w", "--workspace")
        where = self._moved((moved,), where) if moved else where
        valued = frozenset({"--prefix", "-C", "--cwd", "--dir", "-w", "--workspace"})
        words = [*without_options(rest, valued)]
        named = words[1:] if words[:1] in (["run"], ["run-script"], ["exec"], ["x"]) else words
        aliases = {"t": "test", "tst": "test"}
        if named:
            name = aliases.get(named[0], named[0])
            if not self._script(name, where, depth):
                self._command(Command(tuple(named)), where, depth + 1)

    def several(self, rest: tuple[str, ...], where: Places, depth: int) -> None:
        """`run-s a b:*`."""
        for word in without_options(rest, frozenset()):
            for name in self._scripts(where)[1]:
                if name == word or (word.endswith("*") and name.startswith(word.rstrip("*"))):
                    self._script(name, where, depth)

    def _script(self, name: str, where: Places, depth: int) -> bool:
        path, scripts = self._scripts(where)
        directory = posixpath.dirname(path)
        for it in (f"pre{name}", name, f"post{name}"):
            text = scripts.get(it)
            said = f"{path} scripts.{it}"
            if text is not None and self._add(Kind.SCRIPT, said, path, text, (it,)):
                self.shell(text, (directory,), depth + 1)
        if name in scripts:
            self._whole((posixpath.join(directory, ".npmrc"),))
        return name in scripts

    def _scripts(self, where: Places) -> tuple[str, Mapping[str, str]]:
        path = self._first((PACKAGE,), where)
        return path, sections.scripts_of(sections.package_of(self.read(path) or ""))

    # --- test runners ---------------------------------------------------------------------------

    def pytest(self, rest: tuple[str, ...], where: Places, depth: int) -> None:  # noqa: ARG002 - as all
        own = _value(rest, "-c", "--config-file")
        if own:
            self._whole(tuple(self._paths((own,), where)))
        words = (it.split("::")[0] for it in without_options(rest, frozenset({"-c", "-p", "-k"})))
        starts = (*where, *(_joined(where[0], it) for it in words if "=" not in it))
        for directory in dict.fromkeys(up for it in starts for up in _upwards(it)):
            for name, part in PYTEST_INI.items():
                self._ini(posixpath.join(directory, name), part)
            for name, keys in PYTEST_TOML.items():
                self._toml(posixpath.join(directory, name), keys)

    def tox(self, rest: tuple[str, ...], where: Places, depth: int) -> None:  # noqa: ARG002 - as all
        for name, part in TOX_INI.items():
            path = posixpath.join(where[0], name)
            if self._ini(path, part):
                self.shell(_lines_of_commands(self.read(path) or ""), where, depth + 1)
        self._toml(posixpath.join(where[0], "pyproject.toml"), ("tool", "tox"))
        self._whole((posixpath.join(where[0], "tox.toml"),))

    def _tool(self, name: str, where: Places) -> None:
        for pattern in FILES[name]:
            stem = pattern.removesuffix("*")
            names = [f"{stem}{it}" for it in ENDINGS] if pattern != stem else [pattern]
            self._whole(tuple(posixpath.join(where[0], it) for it in names))
        path = posixpath.join(where[0], PACKAGE)
        package = sections.package_of(self.read(path) or "")
        if name in PACKAGE_KEYS and name in package:
            self._add(Kind.KEY, f"{path} {name}", path, repr(package[name]), (name,))

    def _ini(self, path: str, part: tuple[str, ...]) -> bool:
        text = sections.ini_part(self.read(path) or "", part)
        return bool(text) and self._add(Kind.SECTION, f"{path} [{part[0]}]", path, text, part)

    def _toml(self, path: str, keys: tuple[str, ...]) -> None:
        found = self.read(path)
        if not keys:
            self._whole((path,))
        text = sections.toml_part(found, *keys) if found is not None and keys else ""
        if text:
            name = ".".join(keys)
            self._add(Kind.SECTION, f"{path} [{name}]", path, text, (name,))

    # --- files ----------------------------------------------------------------------------------

    def _whole(self, paths: Sequence[str]) -> None:
        for path in paths:
            text = self.read(path)
            if text is not None:
                self._add(Kind.FILE, path, path, text)

    def _add(self, kind: Kind, name: str, path: str, text: str, part: tuple[str, ...] = ()) -> bool:
        """Whether it is new."""
        if (path, name) in self.found or len(self.found) >= MOST:
            return False
        self.found[path, name] = Entry(name=name, path=path, kind=kind, text=text, part=part)
        return True

    def _first(self, names: Sequence[str], where: Places) -> str:
        return next(self._paths(names, where[:1]), "")

    def _paths(self, words: Sequence[str], where: Places) -> Iterator[str]:
        """Those that are files. Of a word with an expansion only what stands behind it counts."""
        for word in words:
            plain = _behind_expansions(word)
            places = where if plain == word else tuple(dict.fromkeys((*where, "")))
            for directory in places if plain else ():
                path = _joined(directory, plain)
                if not path.startswith(("..", "/")) and self.read(path) is not None:
                    yield path

    def _moved(self, words: Sequence[str], where: Places) -> Places:
        target = next((it for it in words if it and not it.startswith("-")), "")
        plain = _behind_expansions(target)
        if not target:
            return where
        if plain == target and not target.startswith("/"):
            return (_joined(where[0], target),)
        return tuple(dict.fromkeys((*(_joined(it, plain or ".") for it in where), *where)))


Follow = Callable[[_Walk, tuple[str, ...], Places, int], None]
PROGRAMS: dict[str, Follow] = {
    **dict.fromkeys(SHELLS, _Walk.in_shell),
    ".": _Walk.sourced,
    "source": _Walk.sourced,
    "eval": _Walk.evaluated,
    **dict.fromkeys(("make", "gmake"), _Walk.made),
    "just": _Walk.just,
    **dict.fromkeys(MANAGERS, _Walk.packaged),
    **dict.fromkeys(("run-s", "run-p", "npm-run-all", "npm-run-all2"), _Walk.several),
    **dict.fromkeys(("pytest", "py.test"), _Walk.pytest),
    "tox": _Walk.tox,
}


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _joined(directory: str, word: str) -> str:
    path = posixpath.normpath(posixpath.join(directory, word))
    return "" if path == "." else path


def _behind_expansions(word: str) -> str:
    """`$(dirname "$0")/lib/x.sh` is `lib/x.sh`."""
    parts = word.split("/")
    dynamic = [at for at, it in enumerate(parts) if "$" in it or "`" in it or "{{" in it]
    return "/".join(parts[dynamic[-1] + 1 :]) if dynamic else word


def _upwards(directory: str) -> Iterator[str]:
    while directory and not directory.startswith(".."):
        yield directory
        directory = posixpath.dirname(directory)
    yield ""


def _value(words: Sequence[str], *names: str) -> str:
    """What an option is given: `-C dir`, `-Cdir`, `--directory=dir`."""
    for at, word in enumerate(words):
        for name in names:
            if word == name and at + 1 < len(words):
                return words[at + 1]
            if word.startswith(f"{name}="):
                return word.partition("=")[2]
            if not name.startswith("--") and word.startswith(name) and len(word) > len(name):
                return word.removeprefix(name)
    return ""


def _is_shells(first: str) -> bool:
    return first.startswith("#!") and any(_base(it) in SHELLS for it in first[2:].split())


def _lines_of_commands(text: str) -> str:
    """The values of tox's `commands`, `commands_pre` and `commands_post`."""
    found = re.findall(r"^commands(?:_pre|_post)?\s*=(.*(?:\n[ \t]+.*)*)", text, re.MULTILINE)
    lines = (line.strip().lstrip("-").strip() for it in found for line in it.split("\n"))
    return "\n".join(re.sub(r"\{posargs[^}]*\}|\{envpython\}", "", it) for it in lines)
