"""A copy of a home: taken while others write, put back whole, from either database to either."""

import tarfile
import threading
from pathlib import Path
from uuid import uuid4

import pytest

from lockgate.adapters.archive import read_archive
from lockgate.adapters.store import open_store
from lockgate.adapters.store.database import copied, put_back
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.bootstrap import open_app
from lockgate.bootstrap.backup import back_up, restore
from lockgate.core.lifecycle.decision import Decision, MirrorTask
from lockgate.core.model.events import SummaryChanged
from lockgate.core.model.task import Status, TaskId
from lockgate.errors import LockgateError, Refused, Unavailable
from tests.scenarios.world import World, git
from tests.store.conftest import Place
from tests.store.postgres_cluster import with_schema
from tests.store.samples import a_session, a_task, moved


def filled(store: SqlStore) -> None:
    for number in range(5):
        task = a_task(f"t{number}", summary="é – \u2028 ' %", depends_on=(TaskId("t0"),))
        store.create(
            Decision(task, (SummaryChanged("x"),), (MirrorTask(),), a_session(task, f"s{number}"))
        )


@pytest.mark.postgres
@pytest.mark.parametrize("to", ["sqlite", "postgres"])
def test_all_that_a_database_holds_can_be_put_into_another_of_either_kind(
    store: SqlStore, to: str, tmp_path: Path, postgres_url: str
) -> None:
    filled(store)
    schema = f"test_{uuid4().hex}"
    there = str(tmp_path / "b.db") if to == "sqlite" else with_schema(postgres_url, schema)
    other = open_store(there)

    put_back(other.database, copied(store.database))

    assert copied(other.database) == copied(store.database)
    assert other.first_broken_event() is None
    other.commit(moved(other.load(TaskId("t0")), status=Status.DONE))
    other.close()


def test_nothing_is_put_where_tasks_are(store: SqlStore, place: Place) -> None:
    filled(store)

    with pytest.raises(Refused, match="has tasks"):
        put_back(store.database, {})


def test_a_copy_is_of_one_moment_while_others_write(store: SqlStore) -> None:
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            store.create(Decision(a_task(f"n{number}"), (SummaryChanged("x"),), (MirrorTask(),)))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        copies = [copied(store.database)]
        while len(copies[-1]["tasks"]) < 20:
            copies.append(copied(store.database))
    finally:
        stop.set()
        writer.join()

    for it in copies:
        assert len(it["tasks"]) == len(it["events"]) == len(it["outbox"])


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.at(tmp_path)


def test_a_home_comes_back_from_its_backup(world: World, tmp_path: Path) -> None:
    id = world.started()
    judge = world.home / "repos" / "p" / "judge.git"
    judge.mkdir(parents=True)
    git(judge, "init", "--quiet", "--bare")
    kept = back_up(world.app, tmp_path / "b.tgz")
    assert kept.tasks == 1
    text = world.path(id).read_text()
    before = copied(world.app.store.database)
    world.app.store.close()

    elsewhere = {"LOCKGATE_HOME": str(tmp_path / "other")}
    back = restore(tmp_path / "b.tgz", elsewhere)

    assert (back.tasks, back.missing) == (1, ())
    app = open_app(elsewhere)
    assert copied(app.store.database) == before
    assert (app.home / "tasks" / id / "TASK.md").read_text() == text
    assert (app.home / "repos" / "p" / "judge.git" / "HEAD").exists()
    assert not (app.home / "auth").exists()
    app.store.close()
    with pytest.raises(Refused, match="has tasks"):
        restore(tmp_path / "b.tgz", elsewhere)


def test_what_is_no_backup_is_not_restored(tmp_path: Path) -> None:
    (tmp_path / "b.tgz").write_bytes(b"no")
    with pytest.raises(Refused, match="not a whole backup"):
        restore(tmp_path / "b.tgz", {"LOCKGATE_HOME": str(tmp_path / "other")})


def test_a_backup_that_was_cut_off_is_not_restored(world: World, tmp_path: Path) -> None:
    world.create()
    back_up(world.app, tmp_path / "b.tgz")
    world.app.store.close()
    whole = (tmp_path / "b.tgz").read_bytes()
    (tmp_path / "b.tgz").write_bytes(whole[: len(whole) // 2])

    with pytest.raises(LockgateError):
        restore(tmp_path / "b.tgz", {"LOCKGATE_HOME": str(tmp_path / "other")})

    app = open_app({"LOCKGATE_HOME": str(tmp_path / "other")})
    assert not app.store.counts()[Status.PENDING]
    app.store.close()


def test_a_backup_that_cannot_be_written_leaves_nothing(world: World, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no backup was written"):
        back_up(world.app, tmp_path / "nowhere" / "b.tgz")
    world.app.store.close()


def test_a_backup_has_no_login_and_only_you_can_read_it(world: World, tmp_path: Path) -> None:
    (world.home / "auth").mkdir()
    (world.home / "auth" / "claude.json").write_text("secret")
    back_up(world.app, tmp_path / "b.tgz")
    world.app.store.close()

    with tarfile.open(tmp_path / "b.tgz") as tar:
        assert not [it for it in tar.getnames() if "auth" in it]
    assert (tmp_path / "b.tgz").stat().st_mode & 0o077 == 0
    assert read_archive(tmp_path / "b.tgz").facts["schema"]
