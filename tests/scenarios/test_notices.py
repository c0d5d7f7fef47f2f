"""People are told of what needs them: by the real ledger, to a notifier that a test plays."""

from collections.abc import Iterator
from datetime import UTC
from functools import partial

import pytest
from msgspec import Struct, field

from lockgate.adapters.notify import FileAddresses
from lockgate.adapters.store.notices import SqlNotices
from lockgate.bootstrap.outside import day_of
from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.agents import Report, Usage
from lockgate.core.model.task import Status, TaskId
from lockgate.core.notices.plan import RETRIES
from lockgate.errors import Refused
from lockgate.ports.notify import Address, Letter
from lockgate.services.orchestrator.notices import Notices
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.subscriptions import Subscriptions, Wanted
from tests.scenarios.stage import Stage
from tests.scenarios.world import REVIEW_ONLY

CONFIG = REVIEW_ONLY + '\n[notify]\nremind = ""\n'


class Killed(BaseException):
    """The process ends here, as by SIGKILL."""


class FakeNotifier(Struct):
    came: list[tuple[str, Letter]] = field(default_factory=list[tuple[str, Letter]])
    why: str = ""
    dies: str = ""  # before or after it has sent

    def send(self, address: Address, letter: Letter) -> str:
        if self.dies == "before":
            raise Killed
        if not self.why:
            self.came.append((address.name, letter))
        if self.dies == "after":
            raise Killed
        return self.why

    def problem(self, url: str) -> str:
        return "" if url.startswith("json:") else "Apprise does not know this URL"

    def new_secret(self) -> str:
        return "whsec_c2VjcmV0"


class Told(Struct):
    stage: Stage
    notifier: FakeNotifier = field(default_factory=FakeNotifier)

    def notices(self) -> Notices:
        app = self.stage.app
        return Notices(
            store=app.store,
            boards=app.boards,
            log=SqlNotices(app.store.database),
            addresses=FileAddresses(app.home, {"WHERE": "json://from-a-variable"}),
            notifier=self.notifier,
            configuration=app.configuration,
            budget=self.stage.budget,
            clock=self.stage.time,
            zone=UTC,
            link=lambda path: f"http://lg.localhost:1{path}",
            report=self.stage.reports.append,
            troubles=app.troubles,
            day=partial(day_of, app),
        )

    def subscriptions(self) -> Subscriptions:
        app = self.stage.app
        return Subscriptions(
            store=app.store,
            addresses=FileAddresses(app.home),
            notifier=self.notifier,
            clock=self.stage.time,
        )

    def add(self, url: str = "json://x", **more: object) -> Address:
        made = Wanted(url=url, **more)  # type: ignore[arg-type]  # a test's own words
        return self.subscriptions().add(made, HUMAN)

    def after(self, seconds: float) -> list[str]:
        """The titles that came, once so much time has gone by."""
        self.notices().turn()
        self.stage.time.at += seconds
        before = len(self.notifier.came)
        self.notices().turn()
        return [letter.message.title for _, letter in self.notifier.came[before:]]


@pytest.fixture
def told(tmp_path) -> Iterator[Told]:
    made = Told(Stage(tmp_path, CONFIG))
    yield made
    made.stage.app.store.close()


def _asks(told: Told) -> TaskId:
    id = told.stage.world.create()
    told.stage.turn()
    move = Move(Status.STUCK, "it is stuck")
    told.stage.app.coordinator.move(id, move, HUMAN)
    return id


@pytest.mark.req("R131")
def test_a_person_is_told_of_a_stuck_task_with_what_it_asks_and_where_to_look(told) -> None:
    told.add()
    id = _asks(told)

    assert told.after(30) == [f"repo/{id}: stuck"]

    [(_, letter)] = told.notifier.came
    assert f"http://lg.localhost:1/t/{id}" in letter.message.body
    assert told.after(86_400) == []


def test_nobody_is_told_of_what_is_over_before_it_has_settled(told) -> None:
    told.add()
    id = _asks(told)
    told.notices().turn()
    told.stage.app.coordinator.move(id, Move(Status.WORKING, "go on"), HUMAN)

    assert told.after(30) == []


@pytest.mark.parametrize("dies", ["before", "after"])
def test_a_need_is_told_again_with_the_same_id_where_a_crash_left_open_whether_it_was(
    told, dies
) -> None:
    told.add("https://example.org/hook")
    _asks(told)
    told.notices().turn()
    told.stage.time.at += 30
    told.notifier.dies = dies
    with pytest.raises(Killed):
        told.notices().turn()
    told.notifier.dies = ""
    told.stage.restart()

    told.notices().turn()
    told.notices().turn()

    ids = [letter.id for _, letter in told.notifier.came]
    assert len(ids) == (1 if dies == "before" else 2)
    assert len(set(ids)) == 1


def test_a_webhook_says_the_need_as_every_face_does(told) -> None:
    hook = told.add("https://example.org/hook")
    id = _asks(told)

    told.after(30)

    [(name, letter)] = told.notifier.came
    assert (name, hook.secret) == ("webhook", "whsec_c2VjcmV0")
    [need] = told.stage.app.boards.inbox().needs
    assert letter.id == need.key
    assert letter.facts["type"] == "need.stuck"
    assert letter.facts["need"] == need.facts()
    assert letter.facts["url"] == f"http://lg.localhost:1/t/{id}"


def test_a_notifier_that_fails_for_a_day_holds_no_task_and_is_told_in_the_inbox(told) -> None:
    told.add()
    told.notifier.why = "the service is down"
    _asks(told)
    told.after(30)
    for seconds in RETRIES:
        told.stage.time.at += seconds
        told.notices().turn()

    kinds = [it.kind for it in told.stage.app.boards.inbox().needs]
    assert sorted(kinds) == ["stuck", "surroundings"]
    assert "the service is down" in "".join(told.stage.reports)
    another = told.stage.world.create(branch="another")
    told.stage.turn()
    assert told.stage.alive(another)


def test_a_muted_task_is_told_to_nobody(told) -> None:
    told.add()
    id = _asks(told)
    told.subscriptions().mute(id, HUMAN, muted=True)

    assert told.after(30) == []


def test_what_its_person_has_seen_is_not_told(told) -> None:
    told.add(person="ann")
    told.add(person="ben")
    _asks(told)
    [need] = told.stage.app.boards.inbox().needs
    told.stage.app.store.mark_seen("ann", need.key, 0.0)

    told.after(30)

    assert [name for name, _ in told.notifier.came] == ["json-2"]


def test_a_repository_names_a_variable_and_its_value_is_told(tmp_path) -> None:
    config = CONFIG.replace('remind = ""', 'urls = ["env:WHERE", "env:UNSET"]')
    told = Told(Stage(tmp_path, config))
    _asks(told)

    assert len(told.after(30)) == 1
    assert told.notifier.came[0][0] == "repo env:WHERE"
    told.stage.app.store.close()


def test_a_digest_comes_once_a_day_with_needs_by_age_and_what_it_cost(tmp_path) -> None:
    told = Told(Stage(tmp_path, CONFIG.replace('remind = ""', 'digest = "08:30"\nkinds = []')))
    told.add()
    _asks(told)

    titles = [title for _ in range(40) for title in told.after(3600)]

    assert titles == ["Lockgate: 1 need open, 0 landed"] * 2
    assert "nothing" not in told.notifier.came[0][1].message.body
    told.stage.app.store.close()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (Wanted(url="nothing://x"), "does not know"),
        (Wanted(url="json://x", kinds=("wrong",)), "no kind"),
        (Wanted(url="json://x", name="no name"), "is no name"),
        (Wanted(url="https://x", secret="m" * 3), "secret"),
    ],
)
def test_a_target_that_cannot_work_is_refused(told, address, why) -> None:
    with pytest.raises(Refused, match=why):
        told.subscriptions().add(address, HUMAN)


# --- the day's budget ----------------------------------------------------------------------------

DAY = CONFIG + "\n[budget]\nday_usd = 1.0\n"


def _costs(stage: Stage, id: TaskId, usd: float) -> None:
    [session] = stage.alive(id)
    stage.harnesses.report = Report(usage=Usage(usd=usd))
    stage.dies(session)
    stage.event(session)


@pytest.fixture
def rich(tmp_path) -> Iterator[Told]:
    made = Told(Stage(tmp_path, DAY))
    yield made
    made.stage.app.store.close()


def test_past_the_day_s_budget_no_agent_is_started_and_a_human_is_told(rich) -> None:
    stage = rich.stage
    rich.add()
    first = stage.world.create()
    stage.turn()
    _costs(stage, first, 1.25)
    second = stage.world.create(branch="second")

    stage.turn(60)

    assert stage.alive(second) == []
    assert stage.alive(first) == []
    needs = [it for it in stage.app.boards.inbox().needs if it.kind == "budget"]
    assert [it.ask for it in needs] == [
        "budget of repo: 1.25 of 1.00 USD are used today; no agent starts"
    ]
    assert "repo: budget" in rich.after(30)


def test_agents_go_on_the_next_day(rich) -> None:
    stage = rich.stage
    first = stage.world.create()
    stage.turn()
    _costs(stage, first, 1.25)
    stage.turn(60)
    second = stage.world.create(branch="second")
    stage.turn(60)
    assert stage.alive(second) == []

    stage.turn(86_400)
    stage.turn(86_400)

    assert stage.alive(second)
    assert [it for it in stage.app.boards.inbox().needs if it.kind == "budget"] == []


def test_what_a_deleted_task_has_cost_stays_spent(rich) -> None:
    stage = rich.stage
    first = stage.world.create()
    stage.turn()
    _costs(stage, first, 1.25)
    stage.app.coordinator.move(first, Move(Status.CANCELLED, "no"), HUMAN)
    stage.app.tasks.delete(first, HUMAN)
    second = stage.world.create(branch="second")

    stage.turn(60)

    assert stage.alive(second) == []


def test_a_share_of_the_day_s_budget_is_told_once(rich) -> None:
    rich.add()
    first = rich.stage.world.create()
    rich.stage.turn()
    _costs(rich.stage, first, 0.85)

    for _ in range(5):
        rich.after(60)

    titles = [it.message.title for _, it in rich.notifier.came if "budget" in it.message.title]
    assert titles == ["repo: 80% of today's budget is used"]
