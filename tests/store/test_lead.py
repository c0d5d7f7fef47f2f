"""Two orchestrators on one database: from the moment the second leads, the first is harmless."""

from pathlib import Path

import pytest

from lockgate.adapters.store.database import copied
from lockgate.adapters.store.lanes import SqlLanes
from lockgate.bootstrap.orchestrator import leading
from lockgate.core.jobs import LEAD, Lead
from lockgate.errors import Fenced
from tests.scenarios.stage import Stage
from tests.scenarios.test_surroundings import CONFIG
from tests.store.conftest import Place


def test_a_leader_that_another_has_followed_writes_nothing_starts_nothing_and_ends(
    migrated_place: Place, tmp_path: Path
) -> None:
    first, second = (Stage(tmp_path / it, CONFIG, migrated_place.location) for it in ("a", "b"))
    with leading(first.app):
        started = first.world.create()
        first.loop.turn()
        assert first.alive(started)
        waiting = first.world.create("next")  # its agent is not started yet
        with leading(second.app):  # though the lock of the whole database was lost
            second.loop.turn()
            before = copied(second.app.store.database)
            sessions = len(first.sessions.runs)

            with pytest.raises(Fenced):
                first.world.create("third")
            late = first.loop.crew.attempt("late", lambda: len(first.world.create("third")))
            first.loop.run()

            assert (late, first.loop.troubles) == (0.0, {})  # another does it: no human is asked

            assert any("another has claimed it" in it for it in first.reports)
            assert len(first.sessions.runs) == sessions
            assert copied(second.app.store.database) == before
            assert second.app.store.load(waiting).rev > 0
            second.world.create("fourth")
    assert SqlLanes(first.app.store.database).rows() == ()
    first.app.close()
    second.app.close()


def test_a_leader_that_was_killed_is_followed_and_one_that_ends_leaves_no_row(
    migrated_place: Place, tmp_path: Path
) -> None:
    stage = Stage(tmp_path, CONFIG, migrated_place.location)
    lanes = SqlLanes(stage.app.store.database)
    lanes.ask(Lead(), LEAD, 1.0)
    lanes.claim(LEAD, "lockgate 17@gone", "old", 2.0)

    with leading(stage.app):
        [row] = lanes.rows()
        assert (row.lane, row.job, row.needs, row.epoch) == (LEAD, Lead(), LEAD, 2)
        assert str(stage.world.home) in row.host
        stage.world.create()

    assert lanes.rows() == ()
    stage.world.create("later")  # who does not lead needs no claim
    stage.app.close()
