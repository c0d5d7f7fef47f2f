"""Waiting for a session, and following one: its own files are watched, the database is not."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lockgate.bootstrap import App
from lockgate.core.model.agents import Ending, Exit
from lockgate.core.model.task import SessionId
from lockgate.errors import Unavailable
from lockgate.faces.cli.answer import people
from lockgate.faces.cli.operate import agents
from lockgate.services.task.sessions import AgentSessions
from tests.given import a_task
from tests.store.samples import a_session


class Unasked:
    """A store that must not be asked."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the store was asked for {name}")


class Slow:
    """A session that is there, or over, or says more, at the third look."""

    def __init__(self, command: tuple[str, ...] | None = None, exit: Exit | None = None) -> None:
        self.command, self.exit, self.looks, self.asked = command, exit, 0, set[SessionId]()

    def attach_command(self, id: SessionId) -> tuple[str, ...] | None:
        self.looks += 1
        self.asked.add(id)
        return self.command if self.looks > 2 else None

    def exit_of(self, _id: SessionId) -> Exit | None:
        return self.exit if self.looks > 2 else None

    def output(self, _id: SessionId) -> str:
        self.looks += 1
        return "line\n" * self.looks


def an_app(sessions: Slow) -> App:
    watched = AgentSessions(cast("Any", Unasked()), cast("Any", sessions), cast("Any", Unasked()))
    return cast("App", SimpleNamespace(agents=watched))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "PAUSE", 0.0)
    monkeypatch.setattr(agents, "PAUSE", 0.0)


def test_takeover_waits_for_the_session_without_asking_the_store() -> None:
    sessions, task = Slow(("tmux", "attach")), a_task(id="fix-1", generation=4)

    assert people._command(an_app(sessions), task) == ("tmux", "attach")
    assert sessions.asked == {"fix-1.4"}


def test_takeover_says_that_the_session_ended_at_once() -> None:
    with pytest.raises(Unavailable, match="it ended at once"):
        people._command(an_app(Slow(exit=Exit(ending=Ending.LOST))), a_task(id="fix-1"))


def test_output_is_followed_to_its_end_without_asking_the_store() -> None:
    sessions = Slow(exit=Exit(ending=Ending.EXITED, code=0))
    session = a_session(a_task(id="fix-1"), "fix-1.1")

    told = list(agents._growing(an_app(sessions), session))

    assert told == [["line"]] * 4
