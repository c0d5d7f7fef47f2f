"""Many landings in real git repositories: changes that fail, clash, and do not go together."""

import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.store.train_log import SqlTrainLog
from lockgate.adapters.train import GitYard
from lockgate.core.lifecycle.decision import Decision, Evidence
from lockgate.core.lifecycle.transition import stay
from lockgate.core.model.task import GatesPassed, Status, TaskId
from lockgate.core.train.model import Built, Green, Red, Result
from lockgate.ports import Project
from lockgate.services.train import queue
from lockgate.services.train.landing import Lander
from lockgate.services.train.queue import LOOK, MergeQueue
from lockgate.services.train.view import TrainView
from tests.scenarios.stage import Time
from tests.scenarios.train.at_once import TestsAtOnce
from tests.scenarios.world import World, git

S = Status
CONFIG = """\
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "true"
[merge]
mode = "auto"
window = 4
batch = BATCH
strategy = "STRATEGY"
"""


def asked(where: Path, *argv: str, stdin: str = "") -> str:
    command = ("git", "-C", str(where), *argv)
    done = subprocess.run(command, input=stdin.encode(), check=True, capture_output=True)
    return done.stdout.decode()


@dataclass
class NameGate:
    """Red where a file is named bad, or where both halves of a pair are there."""

    judge: Path
    green: set[str] = field(default_factory=set)  # trees

    def run(self, it: queue.Tested, cancelled: Callable[[], bool]) -> tuple[Result, str]:
        names = asked(self.judge, "ls-tree", "--name-only", it.built.commit).split()
        bad = [it for it in names if it.startswith("bad")]
        pairs = [it for it in names if it.startswith("left") and f"right{it[4:]}" in names]
        if bad or pairs:
            return Red(f"{[*bad, *pairs]} may not be there"), ""
        self.green.add(it.built.tree)
        return Green(), "[]"


@dataclass
class Junction:
    """A repository with changes that wait to land, as if agents had made them."""

    world: World
    chance: random.Random
    batch: int
    time: Time = field(default_factory=Time)
    last: str = ""

    def __post_init__(self) -> None:
        app = self.world.app
        self.yard = GitYard(self.world.home)
        self.log = SqlTrainLog(app.store.database)
        self.view = TrainView(app.store, self.log, self.yard, app.configuration)
        self.target = self.view.target(self.project)[0]
        self.start = self.yard.tip(self.target)
        self.judge = app.workspaces.base(self.project).with_name("judge.git")
        self.gate = NameGate(self.judge, {self.start.tree})
        self.strangers: list[str] = []

    @property
    def project(self) -> Project:
        return self.world.project()

    def changes(self, count: int) -> list[TaskId]:
        files = [self._file(number) for number in range(count)]
        stream = "".join(_commit(number, self.start, file) for number, file in enumerate(files))
        asked(self.judge, "fast-import", "--quiet", stdin=stream)
        refs = asked(self.judge, "for-each-ref", "--format=%(refname) %(objectname)", "refs/test/")
        commits = dict(line.split() for line in refs.splitlines())
        return [self._waits(it, commits[f"refs/test/{it}"]) for it in range(count)]

    def _file(self, number: int) -> str:
        """Most are good; some fail alone, some together with the next, some clash with the next."""
        kind = self.chance.choices(("good", "bad", "left", "same"), (12, 1, 2, 2))[0]
        if self.last.startswith(("left", "same")):
            self.last = self.last.replace("left", "right").replace("same", "also")
            return self.last.replace("also", "same")
        self.last = f"{kind}-{number}"
        return self.last

    def _waits(self, number: int, commit: str) -> TaskId:
        id = self.world.create(f"b{number}", priority=self.chance.randint(1, 5), auto_start=False)
        self.time.at += 1

        def passed(seen: Evidence) -> Decision:
            ready = replace(
                seen.task,
                status=S.REVIEWING,
                phase=GatesPassed("", self.time.at),
                candidate=commit,
                patch=f"patch {number}",
                pinned=seen.rules,
            )
            return stay(seen, ready)

        self.world.app.coordinator.turn(id, passed)
        return id

    def trains(self) -> MergeQueue:
        return MergeQueue(
            view=self.view,
            lander=Lander(self.view, self.world.app.coordinator, self.time),
            tests=self.gate,  # type: ignore[arg-type]  # a gate that costs nothing
            elapsed=self.time.elapsed,
            held={},
        )

    def run(self) -> None:
        trains = self.trains()
        engine = TestsAtOnce(trains, self._perhaps_a_stranger)
        while trains.due():
            trains.turn(self.project, engine)
            self.time.at += LOOK + 1

    def _perhaps_a_stranger(self) -> None:
        if self.chance.random() < 0.02:
            self._stranger_pushes()

    def _stranger_pushes(self) -> None:
        """Another's commit on main, which nobody has tested before it is there."""
        name = f"stranger-{len(self.strangers)}"
        (self.world.root / name).write_text("x\n")
        git(self.world.root, "add", name)
        git(self.world.root, "commit", "--quiet", "--message", name)
        self.strangers.append(asked(self.world.root, "rev-parse", "HEAD").strip())

    def history(self) -> list[Built]:
        """Every commit that main was ever at, since the start."""
        said = asked(self.world.root, "log", "--walk-reflogs", "--format=%H %T", "main", "--")
        return [Built(*line.split()) for line in said.splitlines()[-2::-1]]  # type: ignore[arg-type]  # two words a line

    def first_parents(self) -> list[str]:
        shown = ("log", "--first-parent", "--reverse", "--format=%H")
        return asked(self.world.root, *shown, f"{self.start.commit}..main").split()

    def assert_as_promised(self, ids: list[TaskId]) -> int:
        tasks = [self.world.task(id) for id in ids]
        landed = {it.landed for it in tasks if it.status is S.DONE}
        history = [it for it in self.history() if it.commit not in self.strangers]
        assert all(it.status in {S.DONE, S.WORKING} for it in tasks), "every change has ended"
        assert [it for it in history if it.tree not in self.gate.green] == [], "all were tested"
        assert {it.commit for it in history} == landed, "the history is the landings"
        if self.batch == 1:
            assert [it.commit for it in self.history()] == self.first_parents()
        assert self.log.open_landings(self.target.name) == ()
        assert asked(self.world.root, "status", "--porcelain") == ""
        noted = asked(self.world.root, "notes", "--ref=refs/notes/lockgate", "list")
        assert len(noted.splitlines()) == len(history)
        return sum(it.status is S.DONE for it in tasks)


def _commit(number: int, base: Built, file: str) -> str:
    text = f"by {number}\n"
    return (
        f"commit refs/test/{number}\ncommitter t <t@localhost> {1_700_000_000 + number} +0000\n"
        f"data 1\nx\nfrom {base.commit}\nM 644 inline {file}\ndata {len(text)}\n{text}\n"
    )


def landings(place: Path, count: int, seed: int, batch: int, strategy: str) -> int:
    config = CONFIG.replace("BATCH", str(batch)).replace("STRATEGY", strategy)
    it = Junction(World.at(place, config), random.Random(seed), batch)  # noqa: S311 - a story's own
    ids = it.changes(count)

    it.run()

    done = it.assert_as_promised(ids)
    it.world.app.store.close()
    return done


@pytest.mark.parametrize(
    ("strategy", "batch"),
    [("merge", 1), ("squash", 4), pytest.param("rebase", 1, marks=pytest.mark.slow)],
)
@pytest.mark.unmeasured
def test_what_lands_in_a_real_repository_was_tested(tmp_path, strategy, batch) -> None:
    assert landings(tmp_path, 26, seed=batch, batch=batch, strategy=strategy) >= 17


@pytest.mark.slow
def test_a_thousand_landings_in_real_repositories_were_all_tested(tmp_path) -> None:
    total, seed = 0, 0
    while total < 1000:
        seed += 1
        strategy = ("merge", "squash", "rebase")[seed % 3]
        total += landings(tmp_path / str(seed), 60, seed, 1 + 3 * (seed % 2), strategy)
