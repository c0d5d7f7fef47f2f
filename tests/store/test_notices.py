"""Who was told what, who is logged in and what a home comes to, on both databases."""

from threading import Barrier, Thread
from typing import Any

from msgspec.structs import replace

from lockgate.adapters.store.figures import SqlFigures
from lockgate.adapters.store.notices import SqlNotices
from lockgate.adapters.store.web_keys import SqlWebKeys
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.task import Status
from lockgate.core.notices.plan import Entry
from lockgate.ports.keys import Key, KeyKind
from tests.store.samples import a_session, a_task, moved

ENTRY = Entry(key="t:1:é '", target="me", noticed=1.5, due=21.5)
KEY = Key(hash="h", kind=KeyKind.LINK, person="ann", made=1.0, expires=61.0)


def spent(store: Any, usd: float, ended: float) -> None:
    """One task whose session has ended at that time and cost so much."""
    task = a_task("t1")
    store.create(Decision(task))
    session = a_session(task, usd=usd, tokens=9, ended=ended)
    store.commit(replace(moved(task), session=session))


def test_an_entry_is_there_as_it_was_and_changed_in_its_place(store) -> None:
    log = SqlNotices(store.database)
    log.write([ENTRY, replace(ENTRY, nth=1)])
    sent = replace(ENTRY, sent=30.0, tries=2, failed=True, gone=3.0)
    log.write([sent], [replace(ENTRY, nth=1)])

    assert log.entries() == (sent,)


def test_what_was_spent_is_counted_from_a_moment_on_and_outlives_its_task(store) -> None:
    spent(store, 1.25, 100.0)
    log, project = SqlNotices(store.database), a_task().project

    assert (log.spent(project, 100.0), log.spent(project, 100.5)) == (1.25, 0.0)
    store.delete(moved(store.load(a_task("t1").id)))
    assert log.spent(project, 0.0) == 1.25


def test_of_two_who_use_a_link_at_once_one_gets_in(store) -> None:
    keys = SqlWebKeys(store.database)
    keys.add(KEY, 1.0)
    found: list[Key | None] = []
    together = Barrier(2)

    def take() -> None:
        together.wait()
        found.append(keys.take("h", KeyKind.LINK, 2.0))

    threads = [Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(it is None for it in found) == [False, True]


def test_a_key_is_found_until_it_expires_and_by_its_kind_alone(store) -> None:
    keys = SqlWebKeys(store.database)
    token = Key(hash="t", kind=KeyKind.TOKEN, person="ann", name="ci", read_only=True, made=1.0)
    keys.add(KEY, 1.0)
    keys.add(token, 1.0)

    assert keys.find("h", KeyKind.LINK, 60.0) == KEY
    assert keys.find("h", KeyKind.LINK, 61.0) is None
    assert keys.find("h", KeyKind.LOGIN, 2.0) is None
    assert keys.all(KeyKind.TOKEN, 1e12) == (token,)
    keys.drop("t")
    assert keys.all(KeyKind.TOKEN, 1.0) == ()


def test_figures_are_sums_over_the_tables(store) -> None:
    spent(store, 1.25, 100.0)
    figures = SqlFigures(store.database)
    last, events = figures.events(0)
    done = store.load(a_task("t1").id)
    store.commit(moved(done, status=Status.DONE, updated=200.0))

    assert sum(it.value for it in events) == last
    [usd], [tokens] = figures.spent()
    assert (usd.value, tokens.value) == (1.25, 9.0)
    assert (figures.gates(), figures.landed()) == ((), 0)
    assert figures.ended(done.project, 150.0) == (1, 0)
    assert figures.ended(done.project, 250.0) == (0, 0)
    assert figures.spent_since(done.project, 50.0) == 1.25
