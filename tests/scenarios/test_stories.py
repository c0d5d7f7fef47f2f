"""Whole stories, as text that anyone can read and add to: see tests/scenarios/stories/*.txt.

A story is a list of steps. Under each stands what must be so afterwards: the status first, then
facts as `name value`, and `does:` with what the outbox was asked to do.
"""

from pathlib import Path

import pytest

from lockgate.core.lifecycle.decision import (
    EvaluateGates,
    NotifyHuman,
    PrepareWorkspace,
    SpawnAgent,
)
from lockgate.core.model.agents import End, Ending, Exit, Report
from lockgate.core.model.task import Role, Status, TaskId
from lockgate.errors import Refused
from lockgate.services.task.callers import HUMAN, Caller
from lockgate.services.task.people import TaskRunner
from tests.scenarios.world import World, git

STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))
REQUIREMENTS = {
    "happy_path": ["R85"],
    "exit_without_signal": ["R88", "R90"],
    "crash": ["R89", "R98"],
    "double_crash": ["R100"],
    "review_fails_twice": ["R86", "R91", "R92"],
    "paused_and_resumed": ["R188", "R190"],
    "respawned": ["R89", "R94"],
}


class Player:
    """Each word of a story is a method."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.id = world.create()
        self.agents: dict[Role, Caller] = {}

    def start(self) -> None:
        self.world.move(self.id, Status.WORKING)

    def worker_begins(self) -> None:
        self.agents[Role.WORKER] = self.world.begin(self.id, Role.WORKER)

    def reviewer_begins(self) -> None:
        self.agents[Role.REVIEWER] = self.world.begin(self.id, Role.REVIEWER)

    def writes(self, *words: str) -> None:
        self.world.write(self.id, " ".join(words).replace("\\n", "\n") + "\n")

    def rewrites(self, *words: str) -> None:
        old, new = " ".join(words).split(" => ")
        path = self.world.path(self.id)
        path.write_text(path.read_text().replace(old, new))

    def worker_says(self, status: str) -> None:
        self.world.move(self.id, Status(status), self.agents[Role.WORKER])

    def reviewer_says(self, status: str) -> None:
        self.world.move(self.id, Status(status), self.agents[Role.REVIEWER])

    def human_says(self, status: str) -> None:
        self.world.move(self.id, Status(status), HUMAN)

    def worker_dies(self) -> None:
        self.world.ends(self.agents[Role.WORKER])

    def reviewer_dies(self) -> None:
        self.world.ends(self.agents[Role.REVIEWER])

    def worker_ends(self, how: str, *limit: str) -> None:
        session = self.agents[Role.WORKER].session
        assert session is not None
        said = Report(limited_until=float(limit[-1]) if limit else None)
        end = End(Exit(ending=Ending(how)), said)
        self.world.app.attendance.session_ended(session.id, end)

    def human_asks_anew(self, *words: str) -> None:
        self.world.app.attendance.respawn(self.id, " ".join(words), HUMAN)

    def human_takes_over(self) -> None:
        self.world.app.attendance.take_over(self.id, HUMAN)

    def human_hands_back(self) -> None:
        self.world.app.attendance.hand_back(self.id, HUMAN)

    def attempts_fail(self, times: str) -> None:
        for _ in range(int(times)):
            self.world.app.coordinator.attempt_failed(self.id, "red")

    def resumes(self) -> None:
        TaskRunner(self.world.app.coordinator).resume(self.id)

    def lands(self) -> None:
        git(self.world.root, "branch", "--force", "fix-login", "main")

    def restarts(self) -> None:
        self.world.restart()

    def play(self, step: str) -> str | None:
        name, *words = step.split(" ")
        try:
            getattr(self, name.replace("-", "_"))(*words)
        except Refused as refusal:
            return refusal.why
        return None


def _steps(text: str) -> list[tuple[str, list[str]]]:
    blocks = [block.strip().splitlines() for block in text.split("\n\n") if block.strip()]
    lines = [[line for line in block if not line.startswith("#")] for block in blocks]
    return [(step, facts) for step, _rule, *facts in (block for block in lines if block)]


def _does(world: World, id: TaskId) -> str:
    names = []
    for pending in world.app.store.pending_effects(id, 100):
        match pending.effect:
            case SpawnAgent(interactive=True):
                names.append("seat human")
            case SpawnAgent(role=role):
                names.append(f"spawn {role}")
            case PrepareWorkspace():
                names.append("prepare workspace")
            case EvaluateGates():
                names.append("evaluate gates")
            case NotifyHuman():
                names.append("ask human")
            case other:
                names.append(type(other).__name__)
    return ", ".join(names)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, id=path.stem, marks=[pytest.mark.req(*REQUIREMENTS.get(path.stem, ["R77"]))]
        )
        for path in STORIES
    ],
)
def test_the_story_goes_as_it_is_told(path, world) -> None:
    player = Player(world)

    for step, facts in _steps(path.read_text()):
        refusal = player.play(step)

        told = dict(fact.split(" ", 1) for fact in facts)
        task = world.task(player.id)
        shown = {
            "is": str(task.status),
            "crashes": str(task.crash_count),
            "round": str(task.review_round),
            "iteration": str(task.iteration),
            "attempts": str(task.failed_attempts),
            "cause": str(task.cause),
            "dead": str(task.dead).lower(),
            "not-before": str(task.not_before),
            "directive": task.directive,
            "does:": _does(world, player.id),
            "refused:": refusal,
        }
        assert told == {name: shown[name] for name in told}, step
        assert ("refused:" in told) == (refusal is not None), refusal
