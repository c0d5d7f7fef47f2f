"""The coordinator on a real store against a small model written from the documents alone.

The bounded profile runs in `make check`, the long one in `make soak`.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from lockgate.core.model.agents import USED_UP, End, Ending, Exit, Report, Usage
from lockgate.core.model.task import Role, Status
from lockgate.errors import Refused, TurnDeclined
from lockgate.services.task.callers import HUMAN, Caller
from tests.scenarios.world import World, git

pytestmark = pytest.mark.unmeasured

MAP = {
    "human": {
        "pending": "working clarification cancelled",
        "clarification": "working cancelled",
        "working": "agent-review clarification stuck cancelled",
        "agent-review": "reviewing working stuck cancelled",
        "reviewing": "done cancelled",
        "stuck": "working agent-review cancelled",
        "paused-for-intervention": "pending cancelled",
    },
    "worker": {
        "working": "agent-review clarification",
        "clarification": "working",
        "stuck": "agent-review",
    },
    "reviewer": {"agent-review": "reviewing working stuck"},
}


ATTENDED = {"working", "clarification", "stuck"}


@dataclass
class Model:
    """S2's, S3's and S4's rules, told once more in the plainest way."""

    status: str = "pending"
    crashes: int = 0
    round: int = 0
    iteration: int = 0
    attempts: int = 0
    handoff: str = ""
    review: str = ""
    landed: bool = False
    spent: set[str] = field(default_factory=set)
    usd: float = 0.0
    taken_over: bool = False
    worker_current: bool = False  # the session we hold is the one the task listens to
    worker_is_human: bool = False
    worker_wanted: str = ""  # "", "agent" or "human": who was asked for and has not begun
    reviewer_current: bool = False
    reviewer_wanted: bool = False

    def asks(self, actor: str, target: str, *, force: bool) -> bool:
        """Whether the move is taken; the model has moved when it is."""
        if target not in MAP[actor].get(self.status, "").split() or (force and actor != "human"):
            return False
        if (self.status, target) == ("reviewing", "done") and not self.landed:
            return False
        met = self.need_met(target)
        if not met and not force:
            return False
        self.take(target, actor, by_artifact=met)
        return True

    def need_met(self, target: str) -> bool:
        fresh = self.review not in self.spent
        match self.status, target:
            case "working", "agent-review":
                return bool(self.handoff) and self.handoff not in self.spent
            case "agent-review", "reviewing":
                return self.review.startswith("PASS") and fresh
            case "agent-review", "working":
                return self.review.startswith("FAIL") and fresh and self.round < 2
            case "agent-review", "stuck":
                return self.review.startswith("FAIL") and fresh and self.round >= 2
            case _:
                return True

    def take(self, target: str, actor: str, *, by_artifact: bool) -> None:
        source = self.status
        verdict = source == "agent-review" and by_artifact
        if verdict and target in {"working", "stuck"}:
            self.spent.add(self.review)
            self.evaluation_fails(target)
            return
        if verdict and target == "reviewing":
            self.spent.add(self.review)
        if (source, target) == ("working", "agent-review") and by_artifact:
            self.spent.add(self.handoff)
        self.count(source, target, actor)
        self.arrives(target)
        starts_a_worker = target == "working" or (source, target) == ("pending", "clarification")
        if starts_a_worker and actor != "worker":
            self.asks_for_a_worker()

    def asks_for_a_worker(self, who: str = "agent") -> None:
        self.worker_current, self.worker_wanted = False, who

    def may_have_a_worker(self) -> None:
        """Lockgate itself asks for one only while something is left of the budget."""
        if self.usd >= 5.0:
            self.arrives("stuck")
        else:
            self.asks_for_a_worker()

    def count(self, source: str, target: str, actor: str) -> None:
        if source == "stuck" and target != "cancelled":
            self.iteration, self.round = 1, 0
        if (source, target, actor) == ("stuck", "working", "human"):
            self.usd, self.taken_over = 0.0, False
        if source == "pending" and target != "cancelled":
            self.iteration = 1
        if source == "paused-for-intervention" and target == "pending":
            self.attempts = self.iteration = self.round = 0
            self.usd, self.taken_over = 0.0, False
        self.round += target == "agent-review"
        self.attempts *= target != "done"

    def evaluation_fails(self, target: str) -> None:
        self.attempts += 1
        if self.attempts >= 5:
            self.arrives("paused-for-intervention")
        elif target == "stuck" or self.iteration >= 3 or self.usd >= 5.0:
            self.arrives("stuck")
        else:
            self.iteration += 1
            self.arrives("working")
            self.asks_for_a_worker()

    def arrives(self, status: str) -> None:
        """A reviewer belongs to one evaluation, a worker that has not begun to working."""
        self.status, self.crashes = status, 0
        self.reviewer_current, self.reviewer_wanted = False, status == "agent-review"
        if status not in {"working", "clarification"}:
            self.worker_wanted = ""

    def worker_ends(self, how: Ending, *, limited: bool, usd: float) -> None:
        limited = limited or how is Ending.LIMITED
        self.usd += usd
        current, self.worker_current = self.worker_current, False
        if not current or self.worker_is_human or self.status != "working":
            return
        if self.need_met("agent-review"):
            self.take("agent-review", "orchestrator", by_artifact=True)
        elif how in {*USED_UP, Ending.SERVICE}:
            self.arrives("stuck")
        elif how is Ending.INTERRUPTED or (limited and how is not Ending.ENDED):
            self.may_have_a_worker()
        elif how is not Ending.ENDED:
            self.worker_crashes()

    def worker_crashes(self) -> None:
        self.attempts += 1
        self.crashes += 1
        if self.attempts >= 5:
            self.arrives("paused-for-intervention")
        elif self.crashes >= 2:
            self.arrives("stuck")
        else:
            self.may_have_a_worker()

    def reviewer_ends(self, how: Ending, *, limited: bool, usd: float) -> None:
        limited = limited or how is Ending.LIMITED
        self.usd += usd
        heard, self.reviewer_current = self.reviewer_current, False
        if not heard or self.status != "agent-review":
            return
        for target in ("reviewing", "working", "stuck"):
            if self.need_met(target):
                self.take(target, "orchestrator", by_artifact=True)
                return
        if how in {*USED_UP, Ending.SERVICE}:
            self.arrives("stuck")
            return
        self.reviewer_wanted = how is not Ending.ENDED
        if how in {Ending.INTERRUPTED, Ending.ENDED} or limited:
            return
        self.crashes += 1
        if self.crashes >= 2:
            self.arrives("stuck")

    def attempt_fails(self) -> None:
        self.attempts += 1
        if self.attempts >= 5:
            self.arrives("paused-for-intervention")
            self.worker_current = False
        else:
            self.may_have_a_worker()

    def respawns(self, *, alive: bool) -> bool:
        if alive or self.taken_over:
            return False
        if self.status == "agent-review":
            self.reviewer_wanted = True
        elif self.status in ATTENDED:
            self.asks_for_a_worker()
        else:
            return False
        return True

    def is_taken_over(self) -> bool:
        if self.taken_over or self.status not in ATTENDED:
            return False
        self.taken_over = True
        self.asks_for_a_worker("human")
        return True

    def is_handed_back(self) -> bool:
        before = dict(self.__dict__)
        if self.taken_over and self.status == "clarification":  # the human did the work
            self.asks("human", "working", force=False)
        if not self.taken_over or not self.asks("human", "agent-review", force=False):
            self.__dict__.update(before)
            return False
        self.taken_over = False
        return True

    @property
    def worker_may_begin(self) -> bool:
        """While a human sits there, nobody else does."""
        wanted = self.worker_wanted == "human" if self.taken_over else self.worker_wanted
        return bool(wanted) and self.status in ATTENDED


HOW = st.sampled_from([Ending.EXITED, Ending.EXITED, Ending.EXITED, *Ending])
LIMITED = st.sampled_from([False, False, False, True])
FORCED = st.sampled_from([False, False, False, True])
COSTS = st.sampled_from([0.0, 2.0, 3.0])


class CoordinatorAgainstTheModel(RuleBasedStateMachine):
    texts = 0

    @initialize(steps=st.integers(0, 3))
    def begin(self, steps: int) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="lockgate-model-"))
        self.world = World.at(self.place)
        self.id = self.world.create()
        self.model = Model()
        self.worker: Caller | None = None
        self.reviewer: Caller | None = None
        if steps > 0:
            self._asks("human", HUMAN, Status.WORKING)
        if steps > 1:
            self.worker_begins()
        if steps > 2:
            self.worker_hands_on()
            self.reviewer_begins()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            assert self.world.app.store.first_broken_event() is None
            history = (self.world.home / "tasks" / self.id / "history.jsonl").read_text()
            assert len(history.splitlines()) == len(self.world.types(self.id))
            self.world.app.store.close()
            shutil.rmtree(self.place)

    def _asks(self, actor: str, caller: Caller, target: Status, *, force: bool = False) -> None:
        expected = self.model.asks(actor, target.value, force=force)
        try:
            self.world.move(self.id, target, caller, force=force, reason="because")
        except Refused:
            taken = False
        else:
            taken = True
        assert taken is expected

    @rule(to=st.sampled_from([it for it in Status if it is not Status.CANCELLED]), force=FORCED)
    def human_asks(self, to: Status, force: bool) -> None:
        self._asks("human", HUMAN, to, force=force)

    @rule(really=st.integers(0, 9), force=FORCED)
    def human_cancels(self, really: int, force: bool) -> None:
        """Rarely: nothing happens to a task any more that is cancelled."""
        if really == 9:
            self._asks("human", HUMAN, Status.CANCELLED, force=force)

    @rule()
    def task_goes_one_step_on_by_hand(self) -> None:
        """Weighs the walk towards the statuses where things happen."""
        onward = {
            "pending": Status.WORKING,
            "stuck": Status.WORKING,
            "clarification": Status.WORKING,
            "paused-for-intervention": Status.PENDING,
        }
        target = onward.get(self.model.status)
        if target:
            self._asks("human", HUMAN, target)
        elif self.model.worker_may_begin:
            self.worker_begins()
        elif self.model.reviewer_wanted:
            self.reviewer_begins()

    @precondition(lambda self: self.model.worker_current)
    @rule()
    def worker_hands_on(self) -> None:
        assert self.worker is not None
        self.somebody_writes_a_handoff(new=True)
        self._asks("worker", self.worker, Status.AGENT_REVIEW)

    @precondition(lambda self: self.worker is not None and self.model.worker_current)
    @rule(to=st.sampled_from(list(Status)))
    def worker_asks(self, to: Status) -> None:
        assert self.worker is not None
        self._asks("worker", self.worker, to)

    @precondition(lambda self: self.worker is not None and not self.model.worker_current)
    @rule()
    def replaced_worker_is_not_heard(self) -> None:
        assert self.worker is not None
        with pytest.raises(Refused):
            self.world.move(self.id, Status.AGENT_REVIEW, self.worker)

    @precondition(lambda self: self.reviewer is not None)
    @rule(to=st.sampled_from([Status.REVIEWING, Status.WORKING, Status.STUCK]))
    def reviewer_asks(self, to: Status) -> None:
        assert self.reviewer is not None
        if self.model.reviewer_current:
            self._asks("reviewer", self.reviewer, to)
        else:
            with pytest.raises(Refused):
                self.world.move(self.id, to, self.reviewer)

    @precondition(lambda self: self.model.worker_may_begin)
    @rule()
    def worker_begins(self) -> None:
        self.worker = self.world.begin(self.id, Role.WORKER)
        assert self.worker.session is not None
        self.model.worker_is_human = self.model.worker_wanted == "human"
        assert self.worker.session.interactive is self.model.worker_is_human
        self.model.worker_current, self.model.worker_wanted = True, ""

    @precondition(lambda self: self.model.reviewer_wanted)
    @rule()
    def reviewer_begins(self) -> None:
        self.reviewer = self.world.begin(self.id, Role.REVIEWER)
        self.model.reviewer_current, self.model.reviewer_wanted = True, False

    @precondition(lambda self: self.worker is not None)
    @rule(how=HOW, limited=LIMITED, usd=COSTS)
    def worker_ends(self, how: Ending, limited: bool, usd: float) -> None:
        assert self.worker is not None
        self.model.worker_ends(how, limited=limited, usd=usd)
        self._ends(self.worker, how, limited=limited, usd=usd)
        self.worker = None

    @precondition(lambda self: self.reviewer is not None)
    @rule(how=HOW, limited=LIMITED, usd=COSTS)
    def reviewer_ends(self, how: Ending, limited: bool, usd: float) -> None:
        assert self.reviewer is not None
        self.model.reviewer_ends(how, limited=limited, usd=usd)
        self._ends(self.reviewer, how, limited=limited, usd=usd)
        self.reviewer = None

    def _ends(self, agent: Caller, how: Ending, *, limited: bool, usd: float) -> None:
        """Told twice, as a monitor that was restarted would."""
        assert agent.session is not None
        end = End(Exit(ending=how), Report(limited_until=0.0 if limited else None), Usage(usd=usd))
        self.world.app.attendance.session_ended(agent.session.id, end)
        with pytest.raises(TurnDeclined, match="has ended already"):
            self.world.app.attendance.session_ended(agent.session.id, end)

    def _human_does(self, expected: bool, act: Callable[[], object]) -> None:
        if expected:
            act()
        else:
            with pytest.raises(Refused):
                act()

    @rule()
    def human_asks_for_the_agent_anew(self) -> None:
        alive = self.model.worker_current or self.model.reviewer_current
        attendance = self.world.app.attendance
        self._human_does(
            self.model.respawns(alive=alive), lambda: attendance.respawn(self.id, "", HUMAN)
        )

    @rule()
    def human_takes_over(self) -> None:
        attendance = self.world.app.attendance
        self._human_does(self.model.is_taken_over(), lambda: attendance.take_over(self.id, HUMAN))

    @rule()
    def human_hands_back(self) -> None:
        attendance = self.world.app.attendance
        self._human_does(self.model.is_handed_back(), lambda: attendance.hand_back(self.id, HUMAN))

    @precondition(lambda self: self.model.status == "working")
    @rule()
    def attempt_fails(self) -> None:
        self.model.attempt_fails()
        self.world.app.coordinator.attempt_failed(self.id, "red")

    @rule(new=st.booleans())
    def somebody_writes_a_handoff(self, new: bool) -> None:
        if new or not self.model.handoff:
            self.texts += 1
            self.model.handoff = f"DONE: {self.texts}"
        self._write()

    @rule(verdict=st.sampled_from(["PASS", "FAIL", "Looks like a pass to me."]))
    def somebody_writes_a_review(self, verdict: str) -> None:
        self.texts += 1
        self.model.review = f"{verdict}\n{self.texts}"
        self._write()

    @rule()
    def somebody_tampers_with_the_frontmatter(self) -> None:
        path = self.world.path(self.id)
        path.write_text(path.read_text().replace("status: ", "status: not-", 1))

    @precondition(lambda self: not self.model.landed and self.model.status == "reviewing")
    @rule()
    def change_lands(self) -> None:
        git(self.world.root, "branch", "--force", "fix-login", "main")
        self.model.landed = True

    @rule()
    def lockgate_restarts(self) -> None:
        self.world.restart()

    @invariant()
    def the_row_is_where_the_model_is(self) -> None:
        if not hasattr(self, "world"):
            return
        task = self.world.task(self.id)
        assert (
            task.status.value,
            task.crash_count,
            task.review_round,
            task.iteration,
            task.failed_attempts,
            task.usd,
            task.taken_over,
        ) == (
            self.model.status,
            self.model.crashes,
            self.model.round,
            self.model.iteration,
            self.model.attempts,
            self.model.usd,
            self.model.taken_over,
        )

    def _write(self) -> None:
        path = self.world.path(self.id)
        head = path.read_text().split("---\n", 2)[1]
        body = "## Context\n"
        if self.model.handoff:
            body += f"\n## Handoff\n{self.model.handoff}\n"
        if self.model.review:
            body += f"\n## Review\n{self.model.review}\n"
        path.write_text(f"---\n{head}---\n{body}")


@pytest.mark.req("R60", "R66", "R77", "R99", "R100")
class TestCoordinatorAgainstTheModel(CoordinatorAgainstTheModel.TestCase):  # type: ignore[valid-type,misc]  # hypothesis makes it
    if os.environ.get("HYPOTHESIS_PROFILE") != "soak":  # shrinking a long walk takes minutes
        settings = settings(phases=[Phase.generate], max_examples=40)
