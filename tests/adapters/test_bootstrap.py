"""Where the state lies, and what is put together over it."""

import sys
from pathlib import Path
from threading import Event, Lock
from typing import cast

import pytest

from lockgate.bootstrap import home_of, open_app
from lockgate.bootstrap.memory import Memory
from lockgate.bootstrap.orchestrator import crew_of, merge_queue
from lockgate.bootstrap.rules import config_schema
from lockgate.core.model.task import TaskId
from lockgate.core.train.model import Term, Tree
from lockgate.errors import Overtaken, Refused
from lockgate.ports.engine import Engine
from lockgate.services.gates.runner import GateRunner


def test_the_home_is_the_one_that_was_named(tmp_path) -> None:
    assert home_of({"LOCKGATE_HOME": str(tmp_path)}) == tmp_path


@pytest.mark.skipif(sys.platform == "darwin", reason="other places there")
def test_without_a_name_it_is_the_users_state_directory(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert home_of({}) == tmp_path / ".local" / "state" / "lockgate"
    assert home_of({"XDG_STATE_HOME": "/s"}) == Path("/s/lockgate")


def test_on_a_mac_it_is_application_support(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "darwin")

    assert home_of({}) == tmp_path / "Library" / "Application Support" / "lockgate"


def test_a_token_that_no_session_has_is_not_taken_for_a_human(tmp_path) -> None:
    with pytest.raises(Refused, match="belongs to no session"):
        open_app({"LOCKGATE_HOME": str(tmp_path), "LOCKGATE_TOKEN": "made-up"})


def test_each_orchestrator_that_starts_raises_the_epoch(tmp_path) -> None:
    app = open_app({"LOCKGATE_HOME": str(tmp_path)})
    runner = cast("GateRunner", None)

    first, second = (merge_queue(app, runner, {}) for _ in range(2))

    assert (first.lander.term.epoch, second.lander.term.epoch) == (1, 2)
    with pytest.raises(Overtaken):
        first.view.log.check_epoch(first.lander.term.epoch)
    app.store.close()


def test_the_schema_of_the_configuration_is_json_schema() -> None:
    schema = config_schema()

    assert "gates" in schema["properties"]  # type: ignore[operator]  # JSON


def test_what_one_job_leaves_behind_the_crew_of_the_next_job_knows(tmp_path) -> None:
    app, memory = open_app({"LOCKGATE_HOME": str(tmp_path)}), Memory()
    engine = cast("Engine", None)

    one, other = (crew_of(app, engine, Event(), print, memory, Term()) for _ in range(2))
    one.judge.runner.words["port"] = Lock()
    one.judge.killed[TaskId("t")] = (1, frozenset({"tests"}))
    one.trains.tests.killed[Tree("a")] = frozenset({"tests"})

    assert other.judge.runner.words == one.judge.runner.words
    assert other.trains.tests.runner.words == one.judge.runner.words
    assert other.judge.killed == one.judge.killed
    assert other.trains.tests.killed == one.trains.tests.killed
    app.store.close()
