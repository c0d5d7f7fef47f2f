"""Which databases and caches tests want, by what CI and compose files start for them."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from lockgate.core.config.settings import INSTALLED_BY, ServiceKind
from lockgate.core.discovery.found import Needed, Plan, Tree

_KINDS = (
    (re.compile(r"postgres|postgis|pgvector|timescale"), ServiceKind.POSTGRES),
    (re.compile(r"^(?:redis|valkey)\b"), ServiceKind.REDIS),
)
_POSTGRES_URL = re.compile(r"(postgres[a-z0-9+]*)://")
_REDIS_URL = re.compile(r"rediss?://")
_IN_POSTGRES = "://$PGUSER:$PGPASSWORD@$PGHOST:$PGPORT/$PGDATABASE"
_USUAL = frozenset({"DATABASE_URL", "REDIS_URL"})  # set already, unless another scheme is wanted
_DOCKER = re.compile(r"\bdocker(?:-| )compose\b.*\bup\b|\bdocker run\b")
MOST_SHOWN = 3


def needed(tree: Tree) -> tuple[Needed, ...]:
    """One of each kind; what CI says comes before what a compose file says."""
    found: dict[ServiceKind, Needed] = {}
    for it in tree.beside:
        kind = _kind(it.image)
        if kind and kind not in found:
            env = tuple(_led_here(it.variables, kind))
            found[kind] = Needed(kind, it.by, env, installed=str(kind) in tree.tools)
    return tuple(found.values())


def with_services(plan: Plan, tree: Tree) -> Plan:
    return replace(plan, services=needed(tree))


def about_services(tree: Tree) -> tuple[str, ...]:
    """What a person must do before tests that need more than the sandbox has can run."""
    return (*_to_install(tree), *_unknown(tree), *_containers(tree))


def _to_install(tree: Tree) -> Iterator[str]:
    for it in needed(tree):
        if not it.installed:
            package = INSTALLED_BY[it.kind]
            yield (
                f"tests seem to need {it.kind} ({it.by}), which is not installed here: "
                f"apt-get install {package}, then lockgate init --force"
            )


def _unknown(tree: Tree) -> Iterator[str]:
    others = {it.image: it.by for it in tree.beside if not _kind(it.image)}
    for image, by in tuple(others.items())[:MOST_SHOWN]:
        yield f"{by} also starts {image}: where tests need it, start it by [[services]] command"


def _containers(tree: Tree) -> Iterator[str]:
    says = (
        "and the sandbox has no Docker: start the same programs by [[services]] (docs/services.md)"
    )
    named = sorted(path for path, text in tree.texts.items() if "testcontainers" in text.lower())
    if named:
        yield f"tests start containers by Testcontainers ({named[0]}), {says}"
    run = next((it for it in tree.said if _DOCKER.search(it.command)), None)
    if run and not needed(tree):
        yield f"CI starts containers by itself ({run.by}), {says}"


def _kind(image: str) -> ServiceKind | None:
    """Of `registry.example:5000/library/postgres:16-alpine@sha256:…`."""
    path = image.partition("@")[0].lower()
    name = path.rpartition("/")[2].partition(":")[0]
    return next((kind for pattern, kind in _KINDS if pattern.search(name)), None)


def _led_here(
    variables: tuple[tuple[str, str], ...], kind: ServiceKind
) -> Iterator[tuple[str, str]]:
    """The variables with an address of that kind, in terms of those that Lockgate sets."""
    for name, value in variables:
        scheme = _POSTGRES_URL.match(value)
        if kind is ServiceKind.POSTGRES and scheme:
            if name not in _USUAL or scheme[1] not in {"postgres", "postgresql"}:
                yield name, f"{scheme[1]}{_IN_POSTGRES}"
        elif kind is ServiceKind.REDIS and _REDIS_URL.match(value) and name not in _USUAL:
            yield name, "$REDIS_URL"
