"""What a Python project's tests need installed: extras, groups, tox, nox, hatch, requirements."""

import configparser
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from lockgate.core.discovery.found import Tree, quote, strings, table

# The names that projects give to what their tests need, and to what their developers need.
FOR_TESTS = ("test", "tests", "testing", "unittest", "pytest", "test-core", "tests-core")
FOR_WORK = ("dev", "develop", "development", "devel", "dev-core")

_TXT = r"\.(?:txt|in|pip)"
_FILES = {
    True: re.compile(
        rf"(?:(?:requirements|tests?|ci|\.ci|\.github|requirements/.*)/)?"
        rf"(?:requirements?[-_.]?(?:tests?|testing)|(?:tests?|testing)[-_.]?requirements?){_TXT}"
        rf"|requirements/(?:tests?|testing){_TXT}|tests?/requirements{_TXT}"
    ),
    False: re.compile(
        rf"(?:requirements[-_.]?(?:dev|develop|development)"
        rf"|(?:dev|develop|development)[-_.]?requirements){_TXT}"
        rf"|requirements/(?:dev|develop|development){_TXT}"
    ),
}
_FACTOR = re.compile(r"^[\w{},!.\-]+:\s+(?=\S)")
_INSTALLED = re.compile(r"\.install\(([^)]*)\)", re.DOTALL)
_LITERAL = re.compile(r"""["']([^"'\n]*)["']""")


class Need(Struct, frozen=True):
    """Words for `pip install`, the text of what they name, and the entry that says so."""

    words: tuple[str, ...]
    text: str
    by: str


def is_package(tree: Tree) -> bool:
    """Whether `pip install -e .` makes sense."""
    project = tree.toml("pyproject.toml")
    tools = table(project, "tool")
    if table(tools, "uv").get("package") is False:
        return False
    if table(tools, "poetry").get("package-mode") is False:
        return False
    described = "project" in project or "build-system" in project or "poetry" in tools
    return described or bool(tree.has("setup.py")) or "[metadata]" in tree.text("setup.cfg")


def needs(tree: Tree, runner: str) -> tuple[Need, ...]:
    """The package with its extras and groups, then more until one of them brings the runner."""
    found = [*_package(tree), *_requirements(tree)]
    for more in (_tox, _nox, _hatch, _pdm):
        if any(mentions(it.text, runner) for it in found):
            break
        found += more(tree)
    return tuple(found)


def mentions(text: str, name: str) -> bool:
    return bool(re.search(rf"(?<![\w.\-]){re.escape(name)}(?![\w\-])", text, re.IGNORECASE))


def _package(tree: Tree) -> Iterator[Need]:
    project = tree.toml("pyproject.toml")
    extras = _extras(tree)
    if is_package(tree):
        names = _chosen(extras)
        by = (
            f"extra {names[0]}" if names else tree.has("pyproject.toml", "setup.py", "setup.cfg")[0]
        )
        text = "\n".join(extras[it] for it in names)
        yield Need(("-e", f".[{','.join(names)}]" if names else "."), text, by)
    groups = table(project, "dependency-groups")
    named = _chosen(dict.fromkeys(groups, ""))
    if named:
        words = tuple(word for it in named for word in ("--group", it))
        text = "\n".join(line for it in named for line in _group(groups, it, ()))
        yield Need(words, text, f"dependency-groups.{named[0]} in pyproject.toml")


def _chosen(known: Mapping[str, object]) -> tuple[str, ...]:
    """The names for tests, else those for development."""
    plain = {re.sub(r"[-_.]+", "-", it).lower(): it for it in known}
    for wanted in (FOR_TESTS, FOR_WORK):
        found = tuple(plain[it] for it in wanted if it in plain)
        if found:
            return found
    return ()


def _extras(tree: Tree) -> dict[str, str]:
    """Name to the requirements' text; of a setup.py only the names are read."""
    listed = table(tree.toml("pyproject.toml"), "project", "optional-dependencies")
    found = {name: "\n".join(strings(it)) for name, it in listed.items()}
    for name, text in _ini(tree.text("setup.cfg"), "options.extras_require").items():
        found.setdefault(name, text)
    _, there, rest = tree.text("setup.py").partition("extras_require")
    if there:
        for name, text in re.findall(r"""["']([\w.\-]+)["']\s*:\s*\[([^\]]*)\]""", rest):
            found.setdefault(name, text)
    return found


def _group(groups: Mapping[str, Any], name: str, seen: tuple[str, ...]) -> Iterator[str]:
    """A group's requirements with those of the groups that it includes."""
    listed = groups.get(name)
    if not isinstance(listed, list) or name in seen:
        return
    for it in cast("list[object]", listed):
        if isinstance(it, str):
            yield it
        elif isinstance(it, Mapping):
            inner = cast("Mapping[str, object]", it).get("include-group")
            yield from _group(groups, str(inner), (*seen, name))


def _requirements(tree: Tree) -> Iterator[Need]:
    """Files for tests, else those for development; the plain one where there is no package."""
    for tests in (True, False):
        files = [it for it in sorted(tree.paths) if _FILES[tests].fullmatch(it)]
        files = [it for it in files if not (it.endswith(".in") and f"{it[:-3]}.txt" in files)]
        if files:
            yield from (_file(tree, it) for it in files)
            break
    if not is_package(tree):
        yield from (_file(tree, it) for it in tree.has("requirements.txt", "requirements/base.txt"))


def _file(tree: Tree, name: str) -> Need:
    return Need(("-r", name), tree.text(name), name)


def _tox(tree: Tree) -> Iterator[Need]:
    wanted = ("testenv", "testenv:test", "testenv:tests", "testenv:py", "testenv:unit")
    for section in wanted:
        known = _ini(tree.text("tox.ini"), section) or _legacy_tox(tree, section)
        if known:
            yield from _of_tox(tree, known, f"[{section}] in tox.ini")
    tox = table(tree.toml("pyproject.toml"), "tool", "tox") or tree.toml("tox.toml")
    base = table(tox, "env_run_base")
    if base:
        words = tuple(_pip_words(tree, strings(base.get("deps"))))
        groups = tuple(w for it in strings(base.get("dependency_groups")) for w in ("--group", it))
        extras = strings(base.get("extras"))
        more = ("-e", f".[{','.join(extras)}]") if extras else ()
        yield Need((*words, *groups, *more), "\n".join(words), "tox in pyproject.toml")


def _legacy_tox(tree: Tree, section: str) -> Mapping[str, str]:
    text = table(tree.toml("pyproject.toml"), "tool", "tox").get("legacy_tox_ini")
    inside = _ini(str(text or ""), section)
    return inside or _ini(tree.text("setup.cfg"), f"tox:{section}")


def _of_tox(tree: Tree, known: Mapping[str, str], by: str) -> Iterator[Need]:
    lines = [_FACTOR.sub("", it) for it in strings(known.get("deps", ""))]
    words = list(_pip_words(tree, lines))
    extras = ",".join(strings(known.get("extras", "").replace(",", "\n")))
    if extras:
        words += ["-e", f".[{extras}]"]
    for group in strings(known.get("dependency_groups", "").replace(",", "\n")):
        words += ["--group", group]
    if words:
        yield Need(tuple(words), "\n".join((*words, *_texts(tree, words))), by)


def _pip_words(tree: Tree, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        plain = re.sub(r"\{(?:tox_?ini_?dir|tox_root)\}/?", "", line).partition(" #")[0].strip()
        if plain.startswith("-r") and plain[2:].strip() in tree.paths:
            yield from ("-r", plain[2:].strip())
        elif plain and not plain.startswith(("-", "#", ".")) and "{" not in plain:
            yield plain


def _texts(tree: Tree, words: Sequence[str]) -> Iterator[str]:
    yield from (tree.text(it) for it in words)


def _nox(tree: Tree) -> Iterator[Need]:
    """What the sessions whose name has `test` install; nothing of the file is run."""
    for name, body in sessions(tree.text("noxfile.py")):
        if "test" not in name:
            continue
        literals = [it for found in _INSTALLED.findall(body) for it in _LITERAL.findall(found)]
        words = tuple(_of_nox(tree, literals))
        if words:
            yield Need(words, "\n".join((*words, *_texts(tree, words))), f"{name} in noxfile.py")


def sessions(text: str) -> Iterator[tuple[str, str]]:
    """Each function of a noxfile by its name, with its body."""
    found = list(re.finditer(r"^def (\w+)\(", text, re.MULTILINE))
    ends = [*(it.start() for it in found[1:]), len(text)]
    for match, end in zip(found, ends, strict=False):
        yield match[1], text[match.end() : end]


def _of_nox(tree: Tree, words: Sequence[str]) -> Iterator[str]:
    before = ""
    for word in words:
        if before in {"-r", "--requirement"} and word in tree.paths:
            yield from ("-r", word)
        elif before in {"-e", "--editable"} or re.match(r"\.\[", word):
            yield from ("-e", word) if re.fullmatch(r"\.(?:\[[\w,.\-]+\])?", word) else ()
        elif before == "--group":
            yield from ("--group", word)
        elif re.match(r"[A-Za-z]", word) and before not in {"-c", "--constraint"}:
            yield word
        before = word


def _hatch(tree: Tree) -> Iterator[Need]:
    """The environments that hatch tests in."""
    envs = dict(table(tree.toml("pyproject.toml"), "tool", "hatch", "envs"))
    envs |= dict(table(tree.toml("hatch.toml"), "envs"))
    for name in ("hatch-test", "test", "tests", "default", "dev"):
        env = table(envs, name)
        listed = (*strings(env.get("dependencies")), *strings(env.get("extra-dependencies")))
        extras = strings(env.get("features"))
        words = (*listed, *(("-e", f".[{','.join(extras)}]") if extras else ()))
        groups = tuple(w for it in strings(env.get("dependency-groups")) for w in ("--group", it))
        if words or groups:
            yield Need((*words, *groups), "\n".join(words), f"tool.hatch.envs.{name}")
            return


def _pdm(tree: Tree) -> Iterator[Need]:
    """Groups of pdm's and uv's own kind, older than `dependency-groups`."""
    tools = table(tree.toml("pyproject.toml"), "tool")
    groups = table(tools, "pdm", "dev-dependencies")
    for name in _chosen(groups):
        words = tuple(it for it in strings(groups.get(name)) if not it.startswith("-"))
        yield Need(words, "\n".join(words), f"tool.pdm.dev-dependencies.{name}")
    older = strings(table(tools, "uv").get("dev-dependencies"))
    if older:
        yield Need(older, "\n".join(older), "tool.uv.dev-dependencies")


def poetry_words(tree: Tree) -> str:
    """The package and the groups of poetry's own kind, for pip: where poetry reaches no index."""
    poetry = table(tree.toml("pyproject.toml"), "tool", "poetry")
    listed = [table(poetry, "dev-dependencies")]
    listed += [table({"": it}, "", "dependencies") for it in table(poetry, "group").values()]
    found = [quote(f"{name}{_range(it)}") for each in listed for name, it in each.items()]
    return " ".join(("-e", ".", *dict.fromkeys(found)))


def _range(wanted: object) -> str:
    """`^1.2` is `>=1.2,<2`; what is no version says nothing."""
    if isinstance(wanted, Mapping):
        wanted = cast("Mapping[str, object]", wanted).get("version")
    text = wanted.strip() if isinstance(wanted, str) else ""
    match = re.fullmatch(r"([\^~])\s*(\d+(?:\.\d+)*)", text)
    if not match:
        return text if text[:1] in {"<", ">", "=", "!"} and "||" not in text else ""
    parts = [int(it) for it in match[2].split(".")]
    nonzero = next((n for n, it in enumerate(parts) if it), len(parts) - 1)
    last = nonzero if match[1] == "^" else min(1, len(parts) - 1)
    below = ".".join(map(str, (*parts[:last], parts[last] + 1)))
    return f">={match[2]},<{below}"


def _ini(text: str, section: str) -> Mapping[str, str]:
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
        return {key: value or "" for key, value in parser[section].items()}
    except (configparser.Error, KeyError):
        return {}


def ini(text: str, section: str) -> Mapping[str, str]:
    """A section of an ini file; empty where there is none."""
    return _ini(text, section)


def pip_words(needed: Sequence[Need]) -> str:
    """For a command line, each pair and each word once."""
    seen: dict[tuple[str, ...], None] = {}
    for need in needed:
        words = list(need.words)
        while words:
            width = 2 if words[0] in {"-e", "-r", "--group"} else 1
            seen.setdefault(tuple(words[:width]))
            words = words[width:]
    pairs = [it for it in seen if not (it == ("-e", ".") and _extras_of(seen))]
    return " ".join(quote(word) for pair in pairs for word in pair)


def _extras_of(seen: Mapping[tuple[str, ...], None]) -> bool:
    return any(it[0] == "-e" and it[1].startswith(".[") for it in seen)
