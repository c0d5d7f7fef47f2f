"""The simple commands of a shell text, in order, as far as plain reading finds them.

It is read with tolerance: what is not known (a loop, a function, a here-document) is passed over
word by word, so that commands inside of it are found too. Nothing is run and nothing expanded.
Some programs run other things, and use files without being told.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lockgate.core.wrappers.makefiles import JUSTFILES, MAKEFILES

LONGEST = 200_000  # characters that are read
MOST = 20_000  # tokens

_TOKEN = re.compile(
    r"""(?:[ \t\r]|\\\r?\n)*(?:
      (?P<note>  (?<![^\s;&|(])\#[^\n]* )
    | (?P<mark>  && | \|\| | \|& | ;;&? | ;& | [|;&\n()] )
    | (?P<into>  &?[0-9]*(?:<<<|<<-?|<&|<>|>&|>>|>\||<|>) )
    | (?P<word>  (?: [^\s|;&()<>'"\\`$] | \\[\s\S] | '[^']*' | "(?:[^"\\]|\\[\s\S])*"
                   | \$\((?:[^()]|\([^()]*\))*\) | \$\{[^{}]*\} | `[^`]*` | \$ | ['"`\\] )+ )
    )""",
    re.VERBOSE,
)
_INNER = re.compile(r"\$\(((?:[^()]|\([^()]*\))*)\)|`([^`]*)`")
_PIECE = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|([^'"\\]+)|(['"\\])""")
_ESCAPED = re.compile(r'\\(["\\$`\n])')
PACKAGE = "package.json"
SHELLS = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})
INTERPRETERS = re.compile(r"(?:python|pypy)[\d.]*|node|nodejs|deno|tsx|ts-node|ruby|perl|php|lua")
MANAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
# They run what comes behind their own words.
LAUNCHERS = frozenset(
    {
        *("bundle", "bunx", "c8", "caffeinate", "chronic", "command", "conda", "coverage"),
        *("cross-env", "devbox", "direnv", "dotenv", "env", "exec", "flock", "hatch"),
        *("ionice", "mise", "nice", "nix", "nohup", "npx", "nyc", "op", "parallel", "pdm"),
        *("pipenv", "pnpx", "poetry", "retry", "rye", "setsid", "stdbuf", "sudo", "time"),
        *("timeout", "unbuffer", "uv", "valgrind", "watch", "xargs", "xvfb-run"),
    }
)
RESERVED = frozenset(
    {
        *("if", "then", "else", "elif", "fi", "do", "done", "while", "until", "for", "case"),
        *("esac", "!", "{", "}", "function"),
    }
)
FILES = {
    "ava": ("ava.config.*",),
    "cypress": ("cypress.config.*",),
    "doit": ("dodo.py",),
    "inv": ("tasks.py",),
    "invoke": ("tasks.py",),
    "jest": ("jest.config.*",),
    "karma": ("karma.conf.*",),
    "mocha": (".mocharc.*", ".mocharc"),
    "nox": ("noxfile.py",),
    "pre-commit": (".pre-commit-config.yaml",),
    "playwright": ("playwright.config.*",),
    "rake": ("Rakefile", "rakefile"),
    "task": ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"),
    "vitest": ("vitest.config.*", "vite.config.*", "vitest.workspace.*"),
}
ENDINGS = ("js", "ts", "mjs", "cjs", "mts", "cts", "json", "jsonc", "yaml", "yml")
PACKAGE_KEYS = frozenset({"ava", "jest", "mocha", "vitest"})
PYTEST_INI = {
    "pytest.ini": ("pytest",),
    ".pytest.ini": ("pytest",),
    "tox.ini": ("pytest",),
    "setup.cfg": ("tool:pytest",),
}
PYTEST_TOML = {"pyproject.toml": ("tool", "pytest"), "pytest.toml": (), ".pytest.toml": ()}
TOX_INI = {"tox.ini": ("tox", "testenv"), "setup.cfg": ("tox",)}
# Tools whose commands stand in a table of pyproject.toml.
TOML_TOOLS = {
    "hatch": ("tool", "hatch", "envs"),
    "pdm": ("tool", "pdm", "scripts"),
    "poe": ("tool", "poe"),
    "rye": ("tool", "rye", "scripts"),
}
# What commands use without naming it, at the top of a repository.
USUAL_FILES = (*MAKEFILES, *JUSTFILES, PACKAGE, *PYTEST_INI, *PYTEST_TOML, "tox.toml", ".npmrc")


class Command(Struct, frozen=True):
    """Its words without quotes, what is read into it, and how deep in brackets it is."""

    words: tuple[str, ...]
    given: tuple[str, ...] = ()
    depth: int = 0


def commands_in(text: str) -> Iterator[Command]:
    """Those within `$(…)` come before the command that they are a word of."""
    words: list[str] = []
    given: list[str] = []
    depth, into = 0, ""
    for kind, token in _tokens(text):
        if kind == "into":
            into = token
            continue
        if kind == "word":
            for inner in _INNER.finditer(token):
                yield from _deeper(inner[1] or inner[2] or "", depth)
            if into:
                given += [unquoted(token)] if into.endswith("<") else []
            else:
                words.append(unquoted(token))
            into = ""
            continue
        if words or given:
            yield Command(tuple(words), tuple(given), depth)
        words, given, into = [], [], ""
        depth += (token == "(") - (token == ")")
    if words or given:
        yield Command(tuple(words), tuple(given), depth)


def unquoted(word: str) -> str:
    return "".join(_unquoted(word))


def quoted_in(text: str, ending: str) -> Iterator[str]:
    """The strings of a program's text that end so: `'…'` and `"…"` of path characters alone."""
    for found in re.finditer(rf"""["']([\w./+-]{{1,300}}(?:{ending}))["']""", text[:LONGEST]):
        yield found[1]


def without_options(words: Sequence[str], valued: frozenset[str]) -> Iterator[str]:
    """The words that are neither options nor the values of those that take one."""
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-") and len(word) > 1:
            skip = word in valued
        else:
            yield word


def _deeper(text: str, depth: int) -> Iterator[Command]:
    for it in commands_in(text):
        yield Command(it.words, it.given, depth + it.depth + 1)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place, end = 0, min(len(text), LONGEST)
    for _ in range(MOST):
        match = _TOKEN.match(text, place, end)
        if match is None or match.end() == place:
            return
        place = match.end()
        if match.lastgroup and match.lastgroup != "note":
            yield match.lastgroup, match[match.lastgroup]


def _unquoted(word: str) -> Iterator[str]:
    for single, double, escaped, plain, _ in _PIECE.findall(word):
        yield single or _ESCAPED.sub(r"\1", double) or escaped.strip("\n") or plain


# Programs that run other things, and the files that they use without being told.
