"""A usage limit belongs to a login: who waits for it, who goes on in whose place, who is asked."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from lockgate.core.model.agents import Ending, Report
from lockgate.core.model.task import Status, TaskId
from lockgate.faces.words import board
from lockgate.faces.words.task import event_story
from lockgate.services.task.boards import NEEDED
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.views import Limited
from tests.given import needs_human
from tests.scenarios.stage import Stage
from tests.scenarios.world import REVIEW_ONLY

S = Status
HOUR = 3600
FALLS_BACK = f'{REVIEW_ONLY}[agents.scripted]\nfallback = "codex"\n'
MANUAL = REVIEW_ONLY.replace("[project]\n", '[project]\nresume = "manual"\n')

Make = Callable[[str], Stage]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Stage] = []

    def make(config: str = REVIEW_ONLY) -> Stage:
        made.append(Stage(tmp_path, config))
        return made[0]

    yield make
    for stage in made:
        stage.app.store.close()


def hits_a_limit(stage: Stage, id: TaskId, seconds: float = HOUR) -> float:
    """Its session ends limited for so long; the answer is until when."""
    until = stage.time.now() + seconds
    stage.harnesses.report = Report(native="n1", limited_until=until)
    ends(stage, id)
    stage.harnesses.report = Report(native="n2")
    return until


def ends(stage: Stage, id: TaskId, how: Ending = Ending.EXITED) -> None:
    [session] = stage.alive(id)
    stage.dies(session, how)
    stage.event(session)
    stage.turn()


def agents_of(stage: Stage, id: TaskId) -> list[str]:
    return [it.agent for it in stage.app.store.sessions(id)]


def told(stage: Stage) -> str:
    seen = board.Home(
        pid=None, board=stage.app.boards.board(NEEDED), limited=stage.app.views.limited()
    )
    return board.status_text(seen, 0.0, 0)


def clock(until: float) -> str:
    return datetime.fromtimestamp(until).astimezone().strftime("%H:%M")


def test_the_first_task_that_hits_a_usage_limit_parks_all_tasks_of_its_login(make) -> None:
    stage = make(REVIEW_ONLY)
    one, two = stage.world.create(), stage.world.create("fix-logout")
    stage.turn()
    until = hits_a_limit(stage, one)
    ends(stage, two, Ending.INTERRUPTED)
    three = stage.world.create("fix-theme")
    stage.turn()
    stage.turn(HOUR - 100)

    assert [stage.alive(it) for it in (one, two, three)] == [[], [], []]
    assert stage.world.task(three).status is S.PENDING
    assert stage.app.views.limited() == (Limited(agents=("scripted",), until=until, waiting=3),)
    assert f"scripted: limited until {clock(until)}, 3 tasks wait" in told(stage)
    assert "usage limit of scripted is over" in stage.app.views.why(three).advice.why
    assert "goes on by itself" in stage.app.views.why(two).advice.why

    stage.turn(101)

    assert [len(stage.alive(it)) for it in (one, two, three)] == [1, 1, 1]
    counted = [stage.world.task(it) for it in (one, two, three)]
    assert all((it.crash_count, it.failed_attempts) == (0, 0) for it in counted)
    assert stage.app.views.limited() == ()


def test_two_agents_that_use_one_login_share_its_limit(make) -> None:
    stage = make(REVIEW_ONLY)
    stage.harnesses.keys_of = {"scripted": "KEY", "claude": "KEY", "codex": "OTHER"}
    stage.credentials.given = {"KEY": "one", "OTHER": "two"}
    mine = stage.world.create()
    stage.turn()
    until = hits_a_limit(stage, mine)
    same = stage.world.create("fix-logout", agent="claude")
    other = stage.world.create("fix-theme", agent="codex")
    stage.turn()

    assert [len(stage.alive(it)) for it in (mine, same, other)] == [0, 0, 1]
    assert f"scripted, claude: limited until {clock(until)}, 2 tasks wait" in told(stage)


def test_another_login_for_the_same_agent_is_not_limited(make) -> None:
    stage = make(REVIEW_ONLY)
    stage.harnesses.keys_of, stage.credentials.given = {"scripted": "KEY"}, {"KEY": "one"}
    mine = stage.world.create()
    stage.turn()
    hits_a_limit(stage, mine)
    stage.credentials.given = {"KEY": "two"}
    next = stage.world.create("fix-logout")
    stage.turn()

    assert len(stage.alive(next)) == 1


def test_the_fallback_goes_on_where_the_first_agent_is_limited(make) -> None:
    stage = make(FALLS_BACK)
    one = stage.world.create()
    stage.turn()
    until = hits_a_limit(stage, one)
    two = stage.world.create("fix-logout")
    stage.turn()

    assert agents_of(stage, one) == ["scripted", "codex"]
    assert agents_of(stage, two) == ["codex"]
    task = stage.world.task(one)
    assert (task.agent, task.instead_of) == ("codex", "scripted")
    assert stage.world.types(one).count("agent.replaced") == 1
    assert f"scripted: limited until {clock(until)}, 2 tasks go on with codex" in told(stage)
    why = stage.app.views.why(one).advice.why
    assert why.startswith("codex works on it in place of scripted, which hit a usage limit")


def test_the_fallback_begins_a_conversation_of_its_own_and_keeps_it(make) -> None:
    stage = make(FALLS_BACK)
    id = stage.world.create()
    stage.turn()
    hits_a_limit(stage, id)
    assert stage.harnesses.jobs[-1].native == ""

    stage.turn(HOUR + 1)
    ends(stage, id, Ending.INTERRUPTED)

    assert agents_of(stage, id) == ["scripted", "codex", "codex"]
    assert stage.harnesses.jobs[-1].native == "n2"


def test_a_task_waits_where_the_fallback_is_limited_too_for_the_limit_that_ends_first(make) -> None:
    stage = make(FALLS_BACK)
    id = stage.world.create()
    stage.turn()
    hits_a_limit(stage, id)
    hits_a_limit(stage, id, 2 * HOUR)
    assert stage.alive(id) == []
    assert "limited until" in told(stage)

    stage.turn(HOUR - 100)
    assert stage.alive(id) == []
    stage.turn(101)

    assert agents_of(stage, id) == ["scripted", "codex", "scripted"]
    task = stage.world.task(id)
    assert (task.agent, task.instead_of) == ("scripted", "")
    assert stage.harnesses.jobs[-1].native == "", "it does not know what codex did"


def test_a_fallback_with_the_same_login_is_limited_as_well(make) -> None:
    stage = make(FALLS_BACK)
    stage.harnesses.keys_of = {"scripted": "KEY", "codex": "KEY"}
    stage.credentials.given = {"KEY": "one"}
    id = stage.world.create()
    stage.turn()
    hits_a_limit(stage, id)

    assert stage.alive(id) == []
    assert agents_of(stage, id) == ["scripted"]


def test_a_fallback_that_is_not_logged_in_is_not_started(make) -> None:
    stage = make(FALLS_BACK)
    stage.harnesses.keys_of, stage.credentials.given = {"scripted": "KEY"}, {"KEY": "one"}
    id = stage.world.create()
    stage.turn()
    stage.harnesses.needs = ("ANOTHER",)
    hits_a_limit(stage, id)

    assert stage.alive(id) == []
    assert agents_of(stage, id) == ["scripted"]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (None, "the agent hit its usage limit"),
        ("npm i", "the agent hit its usage limit; its fallback is skipped, not installed: codex"),
    ],
)
def test_a_fallback_that_is_not_installed_is_told_with_the_limit(make, how, said) -> None:
    stage = make(FALLS_BACK)
    id = stage.world.create()
    stage.turn()
    stage.harnesses.how = how
    hits_a_limit(stage, id)

    events = stage.app.store.events(id, 0, 100)
    assert [event_story(it) for it in events if it.type == "usage.limited"] == [said]


def test_with_resume_manual_a_task_waits_for_a_human_also_when_the_limit_is_over(make) -> None:
    stage = make(MANUAL)
    id = stage.world.create()
    stage.turn()
    hits_a_limit(stage, id)
    stage.turn(2 * HOUR)

    assert stage.alive(id) == []
    assert stage.world.types(id).count("usage.held") == 1
    respawn = f"lockgate task respawn {id}"
    need = needs_human(stage.world.task(id))
    assert need == f"its agent hit a usage limit; start it again: {respawn}"
    advice = stage.app.views.why(id).advice
    assert (advice.command, 'resume = "manual"' in advice.why) == (respawn, True)
    assert respawn in told(stage)

    stage.app.attendance.respawn(id, "", HUMAN)
    stage.turn()

    assert len(stage.alive(id)) == 1
    assert (stage.world.task(id).crash_count, stage.world.task(id).failed_attempts) == (0, 0)


def test_a_human_who_asks_for_the_agent_does_not_wait_for_the_limit(make) -> None:
    stage = make(REVIEW_ONLY)
    id = stage.world.create()
    stage.turn()
    hits_a_limit(stage, id)
    assert stage.alive(id) == []

    stage.app.attendance.respawn(id, "", HUMAN)
    stage.turn()

    assert len(stage.alive(id)) == 1


def test_with_resume_manual_the_fallback_still_goes_on(make) -> None:
    stage = make(FALLS_BACK.replace("[project]\n", '[project]\nresume = "manual"\n'))
    id = stage.world.create()
    stage.turn()
    hits_a_limit(stage, id)

    assert agents_of(stage, id) == ["scripted", "codex"]
    assert "usage.held" not in stage.world.types(id)
