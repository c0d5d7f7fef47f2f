"""What `[env] setup` reads: whether a change edits it, and which variables of the user it gets."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from lockgate.core.text.steering import matching

# What package managers read, in any folder: where `[env] inputs` names nothing, these are inputs.
LOCKS = (
    *("*.lock", "*.lockb", "*.lockfile", "package-lock.json", "npm-shrinkwrap.json"),
    *("pnpm-lock.yaml", "packages.lock.json", "go.sum"),
)
MANIFESTS = (
    *(
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "Pipfile",
        "requirements*.txt",
        "requirements*.in",
    ),
    *("package.json", "pnpm-workspace.yaml", "go.mod", "go.work", "Cargo.toml", "Gemfile"),
    *("*.gemspec", "composer.json", "mix.exs", "pom.xml", "build.gradle", "build.gradle.kts"),
)
USUAL = (*(f"**/{it}" for it in (*LOCKS, *MANIFESTS)), "**/requirements/*.txt")

# Tables of pyproject.toml, and keys of package.json, that no installation reads.
_NOT_INSTALLED = frozenset(
    {
        *("autopep8", "bandit", "basedpyright", "black", "bumpversion", "bumpver", "codespell"),
        *("commitizen", "coverage", "cov", "deptry", "docformatter", "flake8", "importlinter"),
        *("interrogate", "isort", "mutmut", "mypy", "nox", "poe", "pydocstyle", "pylint"),
        *("pyright", "pytest", "ruff", "semantic_release", "taskipy", "towncrier", "tox"),
        *("ty", "vulture", "yapf"),
    }
)
_INSTALLED = frozenset(
    {
        *("bin", "bundleDependencies", "bundledDependencies", "cpu", "dependencies"),
        *("dependenciesMeta", "devDependencies", "engines", "files", "gypfile", "name"),
        *("optionalDependencies", "os", "overrides", "packageManager", "peerDependencies"),
        *("peerDependenciesMeta", "pnpm", "resolutions", "type", "version", "workspaces", "yarn"),
    }
)
_WHEN_INSTALLED = re.compile(r"(?:pre|post)?install|(?:pre|post)?prepare|dependencies|prepublish")
_TOP_PACKAGE = re.compile(r"(?:src/)?[^/]+/__init__\.py")
_PYTHON = ("**/pyproject.toml", "**/setup.py", "**/setup.cfg", "**/requirements*.txt", "**/uv.lock")

Read = Callable[[str], str | None]  # a file of one side, None where it has none


def edited_inputs(
    files: Sequence[str], inputs: Sequence[str], base: Read, change: Read
) -> tuple[str, ...]:
    """Those of a change's files that its set-up would read otherwise than base's.

    A Python package that comes, goes or moves at the top counts too: an installation for editing
    knows packages by their places.
    """
    named = _named(files, inputs)
    edited = tuple(it for it in named if _read_part(it, base(it)) != _read_part(it, change(it)))
    moved = (it for it in files if _TOP_PACKAGE.fullmatch(it))
    installs = bool(matching(inputs, _PYTHON)) or not inputs
    return edited or tuple(
        it for it in moved if installs and (base(it) is None) != (change(it) is None)
    )


def _named(files: Iterable[str], inputs: Sequence[str]) -> tuple[str, ...]:
    """An input is a file, a pattern or a folder."""
    if not inputs:
        return matching(files, USUAL)
    return matching(files, (*inputs, *(f"{it.rstrip('/')}/**" for it in inputs)))


def _read_part(path: str, text: str | None) -> str | None:
    """What an installation reads of it; all of it where that is not known."""
    name = path.rpartition("/")[2]
    if text is None or name not in {"pyproject.toml", "package.json"}:
        return text
    try:
        if name == "pyproject.toml":
            known: object = _of_pyproject(tomllib.loads(text))
        else:
            known = _of_package(json.loads(text))
    except (ValueError, RecursionError):
        return text
    return json.dumps(known, sort_keys=True, default=str)


def _of_pyproject(found: dict[str, object]) -> object:
    tools = _table(found.get("tool"))
    return {**found, "tool": {key: it for key, it in tools.items() if key not in _NOT_INSTALLED}}


def _of_package(found: object) -> object:
    """What is no table is taken as it is."""
    package = _table(found)
    if not package:
        return found
    scripts = _table(package.get("scripts"))
    run = {key: it for key, it in scripts.items() if _WHEN_INSTALLED.fullmatch(key)}
    return {key: it for key, it in package.items() if key in _INSTALLED} | {"scripts": run}


def _table(found: object) -> dict[str, object]:
    """Empty where it is none."""
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


# The user's variables that a set-up is given: proxies, certificates, package indexes.

_PLAIN = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
PROXIES = (*_PLAIN, *(it.upper() for it in _PLAIN))
# Their values are files, which the sandbox then shows.
CERTIFICATES = (
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("SSL_CERT_DIR", "PIP_CERT", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "npm_config_cafile"),
)
_INDEXES = re.compile(
    r"PIP_(?:INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|NO_INDEX|FIND_LINKS|TIMEOUT|RETRIES)"
    r"|UV_(?:DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|INDEX_STRATEGY|INSECURE_HOST"
    r"|FIND_LINKS|NO_INDEX|NATIVE_TLS|SYSTEM_CERTS|HTTP_TIMEOUT|PYTHON_INSTALL_MIRROR)"
    r"|npm_config_(?:registry|@.+:registry|strict_ssl|noproxy|proxy|https_proxy)"
    r"|GO(?:PROXY|PRIVATE|NOPROXY|NOSUMDB|SUMDB|INSECURE)"
    r"|CARGO_(?:REGISTRIES_\w+_INDEX|SOURCE_\w+|HTTP_\w+|NET_\w+)",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?<=://)[^/@\s]*@")

# Where package managers keep what they have downloaded, in the folder that a set-up is given.
CACHES = {
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "npm_config_cache": "npm",
    "pnpm_config_store_dir": "pnpm",
    "YARN_CACHE_FOLDER": "yarn",
    "GOMODCACHE": "go-modules",
    "GOCACHE": "go-build",
    "CARGO_HOME": "cargo",
}
# What is installed is a copy of what is kept: one file by two names would be one for both.
COPYING = {"UV_LINK_MODE": "copy", "pnpm_config_package_import_method": "copy"}
_OLD_PNPM = "npm_config_"  # up to pnpm 10; npm warns of such names


def for_base(environ: Mapping[str, str], passed: Iterable[str]) -> dict[str, str]:
    """Proxies as they are, as agents have them, and all that the user has agreed to.

    The address of an index has no login.
    """
    found = {name: _without_login(it) for name, it in environ.items() if _INDEXES.fullmatch(name)}
    named = (*PROXIES, *CERTIFICATES, *passed)
    return found | {name: environ[name] for name in named if environ.get(name)}


def for_change(environ: Mapping[str, str]) -> dict[str, str]:
    """An address has no user and no password."""
    known = (*PROXIES, *CERTIFICATES)
    return {name: _without_login(environ[name]) for name in known if environ.get(name)}


def caching(folder: str, command: str) -> dict[str, str]:
    """Where that command finds what package managers keep."""
    found = {name: f"{folder}/{it}" for name, it in CACHES.items()} | COPYING
    if "pnpm" not in command:
        return found
    old = {
        f"{_OLD_PNPM}{name.removeprefix('pnpm_config_')}": it
        for name, it in found.items()
        if name.startswith("pnpm_config_")
    }
    return found | old


def _without_login(value: str) -> str:
    return _LOGIN.sub("", value)
