"""Programs that run other things, and the files that they use without being told."""

import re

from lockgate.core.wrappers.makefiles import JUSTFILES, MAKEFILES

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
