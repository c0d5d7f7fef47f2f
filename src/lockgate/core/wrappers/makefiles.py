"""Makefiles and justfiles as texts: targets with their recipes, and the variables in them."""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field

Read = Callable[[str], str | None]  # a path's text; of one that ends with `/`, if it is there

FILES = 100  # that include each other
PARTS = 3000  # targets and variables; more are not told apart
VALUE = 1000  # characters of a variable that are put in
TEXT = 20_000  # characters of a text that variables are put into
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
JUSTFILES = ("justfile", "Justfile", ".justfile")
# These act on every recipe, whatever it is for.
_ALWAYS = frozenset({"SHELL", ".SHELLFLAGS", "MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES"})
_EVERYWHERE = (".IGNORE", ".ONESHELL", ".DEFAULT", ".POSIX", ".EXPORT_ALL_VARIABLES", ".SILENT")

_CONTINUED = re.compile(r"\\\n[ \t]*")
_INCLUDE = re.compile(r"(?:-|s)?include[ \t]+(.+)")
_ASSIGNED = re.compile(
    r"(?P<how>(?:(?:override|export|private)[ \t]+)*)(?P<name>[\w.%/-]+)[ \t]*"
    r"(?:\?|\+|!|:{1,3})?=(?P<value>.*)"
)
_EXPORTS = re.compile(r"export\b[ \t]*(.*)")
_RULE = re.compile(r"(?P<names>[^:=#\t][^:=#]*)::?(?!=)(?P<rest>.*)")
_USED = re.compile(r"\$[({]([\w.%/-]+)|\$(\w)|\{\{\s*([\w-]+)")
_JUST_RULE = re.compile(r"@?(?P<names>[A-Za-z_][\w-]*)(?:[ \t][^:]*)?:(?!=)(?P<rest>.*)")
_JUST_VARIABLE = re.compile(
    r"(?P<how>(?:export[ \t]+)?)(?P<name>[A-Za-z_][\w-]*)[ \t]*:=(?P<value>.*)"
)
_JUST_IMPORT = re.compile(r"""import\??[ \t]+["']([^"'\n]+)["']""")


class Part(Struct, frozen=True, kw_only=True):
    """A target with its recipe, or a variable with all that it is set to."""

    name: str
    path: str
    text: str
    needs: str = ""  # a target's prerequisites
    recipe: tuple[str, ...] = ()


class Book(Struct):
    """A file with the files that it includes."""

    parts: list[Part] = field(default_factory=list[Part])  # targets
    variables: list[Part] = field(default_factory=list[Part])
    exported: set[str] = field(default_factory=set[str])
    exports_all: bool = False
    settings: list[Part] = field(default_factory=list[Part])  # a justfile's `set`
    values: dict[str, str] = field(default_factory=dict[str, str])  # what variables are, in a line
    files: list[str] = field(default_factory=list[str])

    @property
    def too_big(self) -> bool:
        return len(self.parts) + len(self.variables) > PARTS or len(self.files) > FILES

    @property
    def phony(self) -> frozenset[str]:
        """The targets that are made though a file has their name."""
        said = (expanded(it.needs, self.values) for it in self.parts if it.name == ".PHONY")
        return frozenset(name for it in said for name in it.split())

    def sets(self, it: Part) -> None:
        self.variables.append(it)
        self.values[it.name] = it.recipe[0][:VALUE] if it.recipe else ""

    def reached(self, goals: Sequence[str]) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
        """The targets that these lead to, and the variables that act on them."""
        targets = tuple(self._targets((*_EVERYWHERE, *(goals or [self._first()]))))
        acting = (*targets, *self.settings)
        return acting, tuple(self._acting(_names(" ".join(it.text for it in acting))))

    def _first(self) -> str:
        default = self.values.get(".DEFAULT_GOAL", "")
        names = (it.name for it in self.parts if not it.name.startswith((".", "_")))
        return default or next((it for it in names if "%" not in it), "")

    def _targets(self, goals: Sequence[str]) -> Iterator[Part]:
        named: dict[str, list[Part]] = {}
        for it in self.parts:
            named.setdefault(it.name, []).append(it)
        patterns = [it for it in self.parts if "%" in it.name]
        left, seen = list(goals), set[str]()
        given = set[int]()
        while left:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            for it in named.get(name) or [it for it in patterns if _fits(it.name, name)]:
                left += expanded(it.needs, self.values).replace("|", " ").split()
                if id(it) not in given:
                    given.add(id(it))
                    yield it

    def _acting(self, names: Iterator[str]) -> Iterator[Part]:
        named: dict[str, list[Part]] = {}
        for it in self.variables:
            named.setdefault(it.name, []).append(it)
        left = [*(named if self.exports_all else ()), *_ALWAYS, *self.exported, *names]
        seen = set[str]()
        while left:
            name = left.pop()
            if name not in seen:
                seen.add(name)
                for it in named.get(name, ()):
                    left += _names(it.text)
                    yield it


def makefile(path: str, directory: str, read: Read) -> Book:
    """Prerequisites and variables as they are written; both sides of a condition count."""
    book = Book()
    _make(path, directory, read, book)
    return book


def justfile(path: str, read: Read) -> Book:
    book = Book()
    _just(path, read, book)
    return book


def expanded(text: str, values: Mapping[str, str]) -> str:
    """With variables put in, a few levels deep; `$$` is the shell's own."""
    for _ in range(5 if len(text) <= TEXT else 0):
        after = re.sub(  # each value is short, so that this cannot grow without end
            r"\$[({]([\w.%/-]+)[)}]|\{\{\s*([\w-]+)\s*\}\}",
            lambda it: values.get(it[1] or it[2], it[0]),
            text,
        )
        if after == text or len(after) > TEXT:
            break
        text = after
    return text.replace("$$", "$")


def _make(path: str, directory: str, read: Read, book: Book) -> None:
    text = read(path)
    if text is None or path in book.files or book.too_big:
        return
    book.files.append(path)
    names: tuple[str, ...] = ()
    defining: list[str] = []
    for line in _CONTINUED.sub(" ", text.replace("\r\n", "\n")).split("\n"):
        stripped = line.split(" #")[0].strip()
        included = _INCLUDE.match(stripped)
        if defining:
            defining = _defined(line, path, book, defining)
        elif line.startswith("\t") and names:
            _recipe(book, len(names), line)
        elif line.startswith("define "):
            defining = [line.removeprefix("define ").split("=")[0].strip(" ?:+")]
        elif included:
            for it in expanded(included[1], book.values).split():
                _make(_within(directory, it), directory, read, book)
        else:
            names = _make_line(stripped, path, book, names)


def _within(directory: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(directory, path))


def _make_line(line: str, path: str, book: Book, names: tuple[str, ...]) -> tuple[str, ...]:
    """The targets whose recipe follows."""
    line = "" if line.startswith("#") else line
    assigned = _ASSIGNED.match(line)
    rule = None if assigned else _RULE.match(line)
    exports = None if assigned or rule else _EXPORTS.fullmatch(line)
    if assigned:
        book.sets(_variable(assigned, path, line))
        book.exported |= {assigned["name"]} if "export" in assigned["how"] else set()
    elif exports:
        book.exported |= set(exports[1].split())
        book.exports_all = book.exports_all or not exports[1]
    elif rule:
        needs, _, recipe = rule["rest"].partition(";")
        names = tuple(expanded(rule["names"].rstrip(" \t&"), book.values).split())
        if ".EXPORT_ALL_VARIABLES" in names:
            book.exports_all = True
        recipes = (recipe.strip(),) if recipe.strip() else ()
        book.parts += [
            Part(name=it, path=path, text=rule["rest"], needs=needs, recipe=recipes) for it in names
        ]
    return names


def _recipe(book: Book, count: int, line: str) -> None:
    """One more line for the last targets."""
    for at in range(len(book.parts) - count, len(book.parts)):
        it = book.parts[at]
        book.parts[at] = Part(
            name=it.name,
            path=it.path,
            text=f"{it.text}\n{line.strip()}",
            needs=it.needs,
            recipe=(*it.recipe, line.strip()),
        )


def _defined(line: str, path: str, book: Book, defining: list[str]) -> list[str]:
    if line.strip() != "endef":
        return [*defining, line]
    name, *lines = defining
    book.sets(Part(name=name, path=path, text="\n".join(lines), recipe=tuple(lines)))
    return []


def _just(path: str, read: Read, book: Book) -> None:
    text = read(path)
    if text is None or path in book.files or book.too_big:
        return
    book.files.append(path)
    inside = False
    for line in text.replace("\r\n", "\n").split("\n"):
        imported = _JUST_IMPORT.match(line)
        if not line.strip():
            continue
        if line[:1].isspace():
            if inside:
                _recipe(book, 1, line)
        elif imported:
            where = _within(posixpath.dirname(path), imported[1])
            _just(where, read, book)
            inside = False
        else:
            inside = _just_line(line, path, book)


def _just_line(line: str, path: str, book: Book) -> bool:
    """Whether it begins a recipe."""
    variable = _JUST_VARIABLE.match(line)
    rule = None if variable else _JUST_RULE.match(line)
    if line.startswith("set "):
        book.settings.append(Part(name="settings", path=path, text=line))
    elif variable:
        book.sets(_variable(variable, path, line))
        book.exported |= {variable["name"]} if variable["how"] else set()
    elif rule:
        needs = " ".join(re.findall(r"[A-Za-z_][\w-]*", rule["rest"].split("#")[0]))
        book.parts.append(Part(name=rule["names"], path=path, text=line, needs=needs))
        return True
    return False


def _variable(found: re.Match[str], path: str, line: str) -> Part:
    value = found["value"].strip().strip("'\"")
    return Part(name=found["name"], path=path, text=line, recipe=(value,))


def _names(text: str) -> Iterator[str]:
    for found in _USED.findall(text):
        yield from (it for it in found if it)


def _fits(pattern: str, name: str) -> bool:
    before, mark, after = pattern.partition("%")
    return bool(mark) and name.startswith(before) and name.endswith(after)
