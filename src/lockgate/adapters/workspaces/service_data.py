"""What the services of a commit start from: data that was made once, and is copied each time.

Base's is kept for the project, by the content of the inputs, and made of base's own commit. Where a
change has other inputs, its data is made of the change and kept among its runs, which go with it:
no other task and no base ever starts from what a change's code has written.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lockgate.adapters.sandbox import Mount
from lockgate.adapters.sandbox.service_making import Making, make
from lockgate.adapters.sandbox.services.orders import data_version, must_be_installed
from lockgate.adapters.workspaces.clones import BASE, Order
from lockgate.adapters.workspaces.files import locked, remove, size_of
from lockgate.adapters.workspaces.git import told
from lockgate.adapters.workspaces.layer_notes import forget, note_at, note_size
from lockgate.core.config.settings import Service
from lockgate.errors import NotPrepared, Unavailable

KEPT = 8  # of a project, besides those that were used of late
LATELY = 3600.0  # seconds
AGAIN = 30.0  # seconds after which what failed is tried again


class Wanted(Struct, frozen=True, kw_only=True):
    """Whose data, and how a commit is checked out and set up in a directory."""

    order: Order
    services: Sequence[Service]
    commit: str
    lay_out: Callable[[str, Path], None]


def data_of(it: Wanted) -> Path | None:
    """Made now, unless it is there; None where no service needs any."""
    known = tuple(service for service in it.services if service.kind or service.prepare)
    if not known:
        return None
    must_be_installed(known)
    plain = tuple(replace(service, prepare="", inputs=()) for service in known)
    first = _kept(it, _project_place(it) / _key(plain, ""), Making(services=plain, target=Path()))
    if not any(service.prepare for service in known):
        return first
    own, base = (_inputs(it, known, commit) for commit in (it.commit, it.order.base_commit))
    prepared = Making(services=it.services, target=Path(), start_from=first)
    if own == base:
        place = _project_place(it) / _key(known, base)
        return _kept(it, place, prepared, it.order.base_commit)
    place = it.order.home / "runs" / it.order.name / "services"
    try:
        return _kept(it, place / _key(known, f"{own}{it.commit}"), prepared, it.commit)
    except Unavailable as error:
        fix = "mend what the change does to the inputs of [[services]] prepare"
        raise NotPrepared(error.what, why=error.why, fix=fix) from error


def _project_place(it: Wanted) -> Path:
    return it.order.home / "services" / it.order.project.id


def _key(services: Sequence[Service], inputs: str) -> str:
    known = "\0".join((*map(repr, services), data_version(services), inputs))
    return hashlib.sha256(os.fsencode(known)).hexdigest()[:32]


def _inputs(it: Wanted, services: Sequence[Service], commit: str) -> str:
    """As the commit has them; all of its files where none are named."""
    repos, asked = it.order.repos, [service for service in services if service.prepare]
    named = sorted({path for service in asked for path in service.inputs})
    paths = named if all(service.inputs for service in asked) else []
    what = "the inputs of the services were not read"
    where = repos.base if commit == it.order.base_commit else repos.judge
    return told(what, where, "ls-tree", "-r", "-z", commit, "--", *paths)


def _kept(it: Wanted, place: Path, making: Making, commit: str = "") -> Path:
    with locked(it.order.home / "locks" / f"services-{place.name}"):
        if not place.is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
            for half in place.parent.glob(f".new-{place.name}-*"):
                remove(half)
            _raise_again(place)
            try:
                _make(it, replace(making, target=place), commit)
            except Unavailable as error:
                told = json.dumps([error.what, error.why, error.fix])
                _failure(place).write_text(told, encoding="utf-8")
                raise
            _failure(place).unlink(missing_ok=True)
            note_size(place, size_of(place))
            _remove_oldest(place)
        os.utime(place)
    return place


def _failure(place: Path) -> Path:
    return place.with_name(f".failed-{place.name}")


def _raise_again(place: Path) -> None:
    """What failed a moment ago is not run again for each who asks: it is told again."""
    with suppress(OSError):
        known = _failure(place)
        if time.time() - known.stat().st_mtime < AGAIN:
            what, why, fix = json.loads(known.read_text(encoding="utf-8"))
            raise Unavailable(what, why=why, fix=fix)


def _make(it: Wanted, making: Making, commit: str) -> None:
    order, tree = it.order, making.target.with_name(f".new-{making.target.name}-tree")
    making = replace(making, sandboxed=order.sandboxed, hidden=(str(order.home),))
    try:
        if commit:
            it.lay_out(commit, tree)
            base = Mount(source=order.repos.base, target=BASE)
            making = replace(making, tree=tree, mounts=(base,))
        make(making)
    finally:
        for half in making.target.parent.glob(f".new-{making.target.name}-*"):
            remove(half)


def _remove_oldest(newest: Path) -> None:
    """Those that were used least of late, and what a kill has left half made.

    One that was used within the hour may be in use.
    """
    others = [it for it in newest.parent.iterdir() if it != newest]
    whole = [it for it in others if not it.name.startswith(".")]
    whole.sort(key=lambda it: -it.stat().st_mtime)
    notes = {note_at(it) for it in (newest, *whole)}
    halves = [it for it in others if it.name.startswith(".") and it not in notes]
    for place in (*whole[KEPT - 1 :], *halves):
        if time.time() - place.stat().st_mtime > LATELY:
            forget(place)
            remove(place)
