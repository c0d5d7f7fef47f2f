"""A home moves to another database and back: all of it, compared, or not at all."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from lockgate.adapters.store import open_store
from lockgate.adapters.store.database import copied, put_back
from lockgate.adapters.system import holding
from lockgate.bootstrap import moving, open_app
from lockgate.bootstrap.moving import SQLITE, move_to
from lockgate.errors import LockgateError, Refused, Unavailable
from tests.scenarios.world import World
from tests.store.postgres_cluster import with_schema
from tests.store.samples import moved


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World.at(tmp_path)
    world.create("one")
    world.started("two")
    yield world
    world.app.store.close()


@pytest.fixture
def url(postgres_url: str) -> str:
    return with_schema(postgres_url, f"test_{uuid4().hex}")


def rows(world: World) -> dict[str, list[str]]:
    """They have no order of their own."""
    return {name: sorted(lines) for name, lines in copied(world.app.store.database).items()}


def environ(world: World) -> dict[str, str]:
    return {"LOCKGATE_HOME": str(world.home)}


@pytest.mark.postgres
def test_a_home_moves_to_postgres_and_back_with_every_row(world: World, url: str) -> None:
    before = rows(world)

    there = move_to(world.app, url, {})

    assert (world.home / "database").stat().st_mode & 0o777 == 0o600
    assert not (world.home / "lockgate.db").exists()
    assert Path(there.kept).parent == world.home / "backups"
    assert there.tables["tasks"].rows == 2
    world.restart()
    assert rows(world) == before
    world.create("three")
    after = rows(world)

    back = move_to(world.app, SQLITE, {})

    assert back.now == str(world.home / "lockgate.db")
    assert not (world.home / "database").exists()
    world.restart()
    assert rows(world) == after
    assert world.app.store.first_broken_event() is None


@pytest.mark.postgres
def test_nobody_writes_into_the_old_database_any_more(world: World, url: str) -> None:
    with closing(open_app(environ(world)).store) as late:
        [task] = late.on_branch(world.project().id, "one")

        move_to(world.app, url, {})

        with pytest.raises(LockgateError):
            late.commit(moved(task))
    world.restart()
    assert world.task(task.id) == task


@pytest.mark.postgres
def test_a_database_with_tasks_is_not_written_over(world: World, url: str) -> None:
    move_to(world.app, url, {})
    world.restart()
    move_to(world.app, SQLITE, {})
    world.restart()
    world.create("more")

    with pytest.raises(Refused, match="has tasks"):
        move_to(world.app, url, {})

    world.restart()
    assert len(world.app.store.named("")) == 3


@pytest.mark.postgres
def test_a_move_that_was_killed_before_the_switch_goes_on(world: World, url: str) -> None:
    with closing(open_store(url)) as other:
        moving._copy(world.app.store, other)

    assert move_to(world.app, url, {}).tables["tasks"].rows == 2


@pytest.mark.postgres
def test_what_somebody_writes_meanwhile_is_not_lost(world: World, url: str, monkeypatch) -> None:
    def written(*argv: object) -> None:
        put_back(*argv)  # type: ignore[arg-type]  # handed on as given
        world.create("late")

    monkeypatch.setattr("lockgate.bootstrap.moving.put_back", written)

    with pytest.raises(Unavailable, match="somebody wrote into the old database"):
        move_to(world.app, url, {})

    monkeypatch.undo()
    assert len(world.app.store.named("")) == 3
    assert move_to(world.app, url, {}).tables["tasks"].rows == 3


def test_a_write_before_the_switch_itself_is_noticed_too(world: World) -> None:
    tables = moving._digests(copied(world.app.store.database))
    world.create("late")

    with pytest.raises(Unavailable, match="meanwhile"):
        moving._switch(world.app, "postgresql://nowhere", tables)

    assert not (world.home / "database").exists()
    world.create("later")


def test_a_home_whose_orchestrator_runs_is_not_moved(world: World) -> None:
    with (
        holding(world.home),
        pytest.raises(Unavailable, match="an orchestrator of this home runs") as told,
    ):
        move_to(world.app, "postgresql://nowhere/x", {})

    assert told.value.fix == "lockgate down, then try again"


@pytest.mark.parametrize(
    ("where", "environ", "why"),
    [
        ("mysql://x", {}, "neither a PostgreSQL URL"),
        (SQLITE, {}, "already"),
        (SQLITE, {"LOCKGATE_DATABASE": "postgresql://x"}, "LOCKGATE_DATABASE is set"),
    ],
)
def test_what_cannot_be_moved_to_is_refused_at_once(world: World, where, environ, why) -> None:
    with pytest.raises(Refused, match=why):
        move_to(world.app, where, environ)


def test_a_home_that_names_an_unreadable_database_says_so(tmp_path: Path) -> None:
    (tmp_path / "database").mkdir()

    with pytest.raises(Unavailable, match="the database was not opened"):
        open_app({"LOCKGATE_HOME": str(tmp_path)})
