"""Who has lost its claim writes nothing: every write of every part of the database is tried."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from types import UnionType
from typing import Any, Union, get_args, get_origin

import pytest
from msgspec.structs import replace

import lockgate.adapters.store as package
from lockgate.adapters.store import open_store
from lockgate.adapters.store.database import Database, Work, copied
from lockgate.adapters.store.fenced import FencedDatabase
from lockgate.adapters.store.lanes import SqlLanes
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.adapters.store.train_log import SqlTrainLog
from lockgate.core.forge.model import Pull
from lockgate.core.hosts import Host, HostState
from lockgate.core.jobs import Job, Lead, lane_of
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.people import Draft, Person, Right
from lockgate.core.model.statistics import Count
from lockgate.core.notices.plan import Entry
from lockgate.core.train.model import Built, Candidate, Commit, Green, Result, Tree
from lockgate.errors import Fenced, LockgateError
from lockgate.ports import Cursor, Landing, Mark, Project, TaskFilter
from lockgate.ports.keys import Key, KeyKind
from tests.store.conftest import Place
from tests.store.samples import PROJECT, a_task, moved

LANE = lane_of(Lead())
NO_WRITE = {"close", "claim", "database"}  # of the store: its connection's own
NOT_OURS = {"FencedDatabase"}
SAMPLES: dict[Any, object] = {
    str: "t1:1:0",
    int: 1,
    float: 1.0,
    bool: True,
    Decision: moved(a_task()),
    Project: replace(PROJECT, common_dir="/other/.git"),
    Draft: Draft(task=a_task().id, patch="p", file="f", line=1, quote="q", text="no"),
    Person: Person(name="me", may=Right.WORK, added=1.0, added_by="me"),
    Count: Count(1, "p1", "landed", "", 0, 1, 1.0),
    Entry: Entry(key="k", target="t", nth=0, noticed=1.0, due=1.0),
    Candidate: Candidate(Commit("c"), (), Built(Commit("d"), Tree("e"))),
    Landing: Landing(expected=Commit("c"), commit=Commit("d"), tree=Tree("e"), tasks=()),
    Key: Key(hash="h", kind=KeyKind.LOGIN, person="me", made=1.0),
    KeyKind: KeyKind.LOGIN,
    Pull: Pull(task=a_task().id, project=PROJECT.id),
    Host: Host(name="h1"),
    HostState: HostState.UP,
    Mark: Mark(),
    Cursor: None,
    Mapping[str, object]: {},
    TaskFilter: TaskFilter(),
    Job: Lead(),
    Result: Green(),
}


class Watched:
    """Notes that something would be written, and writes nothing."""

    def __init__(self, database: Database) -> None:
        self._database, self.wrote = database, False

    def write(self, work: Work) -> None:
        self.wrote = True

    write_lightly = write

    def __getattr__(self, name: str) -> object:
        return getattr(self._database, name)


@pytest.fixture
def store(migrated_place: Place) -> Generator[SqlStore]:
    opened = open_store(migrated_place.location)
    opened.add_project(PROJECT)
    opened.create(Decision(a_task()))
    SqlTrainLog(opened.database).put_result("t1:1:0", "rules", Tree("old"), Green())
    yield opened
    opened.close()


@pytest.fixture
def old(store: SqlStore) -> FencedDatabase:
    """The database of a leader that another one has followed."""
    lanes = SqlLanes(store.database)
    lanes.ask(Lead(), "lead", 1.0)
    lanes.claim(LANE, "h1", "first", 2.0)
    lanes.claim(LANE, "h2", "second", 3.0)
    return FencedDatabase(store.database, LANE, "first")


def test_every_write_of_every_part_refuses_who_has_lost_its_claim(
    store: SqlStore, old: FencedDatabase
) -> None:
    before, writes = everything(store), set[str]()

    for part, name in methods():
        watched = Watched(store.database)
        with suppress(Exception):  # nothing was written, so that it may have nothing to answer
            call(part(watched), name)
        assert watched.wrote is says_it_writes(part, name), f"{part.__name__}.{name}"
        if not watched.wrote:
            continue
        writes.add(f"{part.__name__}.{name}")
        with pytest.raises(Fenced):
            call(part(old), name)

    assert everything(store) == before
    assert {"SqlStore.commit", "SqlStore.effects_done", "SqlTrainLog.intend"} < writes
    assert len(writes) > 35


def test_who_has_the_claim_writes_and_reads_as_without_one(store: SqlStore) -> None:
    lanes = SqlLanes(store.database)
    lanes.ask(Lead(), "lead", 1.0)
    lanes.claim(LANE, "h1", "first", 2.0)
    database = FencedDatabase(store.database, LANE, "first")
    ours = SqlStore(database)

    ours.commit(moved(a_task()))
    ours.effects_done(["t1:1:0"])

    assert ours.pulse() == store.pulse()
    assert ours.load(a_task().id) == store.load(a_task().id) == moved(a_task()).task
    assert copied(database) == copied(store.database)
    assert (database.shown, database.known) == (store.database.shown, store.database.known)
    assert ours.claim("me") == ""


def test_who_has_lost_its_claim_is_told_so_before_it_writes(
    store: SqlStore, old: FencedDatabase
) -> None:
    with pytest.raises(Fenced) as refused:
        SqlStore(old).pulse()

    assert isinstance(refused.value, LockgateError)
    assert "another has claimed it" in refused.value.why
    assert SqlStore(old).load(a_task().id) == a_task()  # it may look


def methods() -> Iterator[tuple[Callable[[Any], Any], str]]:
    """Every public method of every class over a database."""
    for module in pkgutil.iter_modules(package.__path__):
        found = importlib.import_module(f"{package.__name__}.{module.name}")
        for part in vars(found).values():
            if inspect.isclass(part) and part.__module__ == found.__name__ and over_database(part):
                for name, _ in inspect.getmembers(part, inspect.isfunction):
                    if not name.startswith("_") and name not in NO_WRITE:
                        yield part, name


def over_database(part: type) -> bool:
    parameters = inspect.signature(part).parameters
    return [*parameters] == ["database"] and part.__name__ not in NOT_OURS


def says_it_writes(part: Callable[[Any], Any], name: str) -> bool:
    """As its text has it: so no sample lets a write go by unseen."""
    text = inspect.getsource(getattr(part, name))
    return bool(re.search(r"\bwrite|\._write|\._wrote|\._changed", text))


def call(part: object, name: str) -> object:
    method = getattr(part, name)
    positional, named = list[object](), dict[str, object]()
    for it in inspect.signature(method).parameters.values():
        value = sample(it.annotation)
        if it.kind is it.KEYWORD_ONLY:
            named[it.name] = value
        else:
            positional.append(value)
    return method(*positional, **named)


def sample(hint: Any) -> object:
    """A value of this type; of a sequence one with an item, so that there is something to write."""
    if hint in SAMPLES:
        return SAMPLES[hint]
    if hasattr(hint, "__supertype__"):
        return sample(hint.__supertype__)
    if get_origin(hint) in (Union, UnionType):
        return sample(get_args(hint)[0])
    return (sample(get_args(hint)[0]),)


def everything(store: SqlStore) -> object:
    lanes = [(it.lane, it.epoch, it.token, it.why) for it in SqlLanes(store.database).rows()]
    return copied(store.database), lanes
