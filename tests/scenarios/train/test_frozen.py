"""An orchestrator that freezes with its push still to come, while the next one takes over.

The first is a process of its own; the second has a clone of its own, as another host would.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.train import GitYard
from lockgate.adapters.train.targets import fence_of
from lockgate.adapters.workspaces.git import fetched
from lockgate.adapters.workspaces.repositories import repositories_of
from lockgate.core.config.settings import MergeStrategy
from lockgate.core.model.task import TaskId
from lockgate.core.train.model import Built, Commit, Term
from lockgate.ports import Arrived, Leave, Load, Project, Target
from lockgate.services.train.landing import Lander
from lockgate.services.train.view import Train, TrainView
from tests.scenarios.train.test_landing import Junction, asked
from tests.scenarios.world import World, git

ROOT = Path(__file__).parents[3]
PATIENCE = 30.0
LONG, SHORT = "60", "2"  # seconds that a push may take
CONFIG = """\
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "true"
[merge]
mode = "auto"
target = "remote"
fence = "FENCE"
"""
# Waits at the first push of the branch, then goes on as git does.
PAUSING_GIT = """\
#!/bin/sh
case " $* " in *:refs/heads/main*)
    if mkdir "$SIGNS/once" 2>/dev/null; then
        echo $$ > "$SIGNS/paused.new" && mv "$SIGNS/paused.new" "$SIGNS/paused"
        until [ -e "$SIGNS/go" ]; do sleep 0.02; done
    fi
esac
exec "$REAL" "$@"
"""
# At the remote, after everything was sent: the refs are about to move.
PAUSING_HOOK = """\
#!/bin/sh
grep -q refs/heads/main || exit 0
mkdir "SIGNS/once" 2>/dev/null || exit 0
echo $$ > "SIGNS/paused.new" && mv "SIGNS/paused.new" "SIGNS/paused"
until [ -e "SIGNS/go" ]; do sleep 0.02; done
"""


def eventually(true: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until, "it never came true"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@dataclass
class Two:
    """A change that waits to land at a remote, and two orchestrators that would land it."""

    place: Path
    fence: str
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        world = World.at(self.place, CONFIG.replace("FENCE", self.fence))
        self.hub, self.signs = self.place / "hub.git", self.place / "signs"
        self.signs.mkdir()
        git(self.place, "clone", "--quiet", "--bare", str(world.root), str(self.hub))
        git(world.root, "remote", "add", "origin", str(self.hub))
        self.junction = Junction(world, random.Random(1), 1)  # noqa: S311 - a story's own
        self.start = self.junction.start.commit
        [self.task] = self.junction.changes(1)
        git(self.place, "clone", "--quiet", str(self.hub), str(self.place / "other"))
        self._git_that_pauses()

    def _git_that_pauses(self) -> None:
        (self.place / "bin").mkdir()
        fake = self.place / "bin" / "git"
        fake.write_text(PAUSING_GIT)
        fake.chmod(0o755)

    def pause_at_the_hub(self) -> None:
        (self.signs / "no-git").touch()
        shutil.rmtree(self.place / "bin")
        hook = self.hub / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(PAUSING_HOOK.replace("SIGNS", str(self.signs)))
        hook.chmod(0o755)

    def first(self, within: str, freezes_at: int = 0) -> subprocess.Popen[str]:
        """The first orchestrator; it stops at its push, or after a look at the epoch."""
        real = shutil.which("git")
        assert real
        world = self.junction.world
        program = (sys.executable, "-m", "tests.scenarios.train.freezing_train")
        process = subprocess.Popen(
            (*program, str(world.home), str(world.root), within, str(freezes_at)),
            cwd=ROOT,
            env=os.environ
            | {
                "PATH": f"{self.place / 'bin'}:{os.environ['PATH']}",
                "SIGNS": str(self.signs),
                "REAL": real,
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        if freezes_at:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
        else:
            eventually((self.signs / "paused").exists)
            process.send_signal(signal.SIGSTOP)
        return process

    def wakes(self, process: subprocess.Popen[str]) -> str:
        """How the first orchestrator's last turn ended."""
        (self.signs / "go").touch()
        process.send_signal(signal.SIGCONT)
        told, _ = process.communicate(timeout=PATIENCE)
        return told.strip()

    def second(self) -> tuple[Lander, Train]:
        """Another orchestrator on the same database, with a home and a clone of its own."""
        app, log = self.junction.world.app, self.junction.log
        yard = GitYard(self.place / "other home")
        view = TrainView(app.store, log, yard, app.configuration)
        term = Term(log.raise_epoch(), self.junction.time.elapsed(), lost_after=3.0)
        target = replace(self.junction.view.target(self.junction.project)[0], project=self.clone)
        return Lander(view, app.coordinator, self.junction.time, term), self.train(view, target)

    def train(self, view: TrainView, target: Target) -> Train:
        """The rules are read where they lie in this test, in the first one's repository."""
        real = view.configuration.rules_of(self.junction.project)
        settings = view.configuration.settings_of(self.junction.project)
        return Train(target=target, tip=view.yard.tip(target), settings=settings, rules=real)

    @property
    def clone(self) -> Project:
        root = self.place / "other"
        return replace(self.junction.project, root=str(root), common_dir=str(root / ".git"))

    def lands_another(self, by: Lander, train: Train) -> Commit:
        root, yard = self.place / "other", by.view.yard
        git(root, "checkout", "--quiet", "-b", "elsewhere", "origin/main")
        (root / "other.txt").write_text("x\n")
        git(root, "add", "other.txt")
        git(root, "commit", "--quiet", "--message", "another change")
        commit = Commit(asked(root, "rev-parse", "HEAD").strip())
        judge = repositories_of(self.place / "other home", self.clone).judge
        assert fetched(judge, root / ".git", commit).code == 0
        load = Load(TaskId("another"), commit, "Land another")
        built = yard.build(train.target, train.tip.commit, [load], MergeStrategy.MERGE)
        assert isinstance(built, Built)
        leave = Leave(by.term.epoch, 99, lambda: by.view.log.check_epoch(by.term.epoch))
        assert yard.land(train.target, train.tip.commit, built.commit, leave) == Arrived()
        return built.commit

    def at_hub(self, ref: str = "refs/heads/main") -> str:
        return asked(self.hub, "rev-parse", ref).strip()

    def close(self) -> None:
        (self.signs / "go").touch()
        for process in self.processes:
            process.kill()
            process.communicate()
        self.junction.world.app.store.close()


@pytest.fixture
def two(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Two]:
    it = Two(tmp_path, request.param)
    yield it
    it.close()


# With the fence a look comes before the fence is moved, and one before the branch is.
LAST_LOOK = {"wait": 1, "ref": 2}


@pytest.mark.parametrize(
    "lands",
    [
        pytest.param(False, id="", marks=pytest.mark.slow),
        pytest.param(True, id="and another lands"),
    ],
)
@pytest.mark.parametrize("frozen", ["at its push", "after its last look"])
@pytest.mark.parametrize("two", ["wait", "ref"], indirect=True)
def test_a_frozen_orchestrator_does_not_move_the_branch_when_it_wakes(two, frozen, lands) -> None:
    looks = LAST_LOOK[two.fence] if frozen == "after its last look" else 0
    first = two.first(SHORT if two.fence == "wait" else LONG, looks)
    second, train = two.second()

    again = second.recover(train)

    if two.fence == "wait":
        assert again == second.term.lost_after
        assert len(second.view.log.open_landings(train.name)) == 1
        if frozen == "at its push":
            paused = int((two.signs / "paused").read_text())
            eventually(lambda: is_gone(paused))  # though whoever started it is stopped
        else:
            time.sleep(float(SHORT) + 0.5)
        two.junction.time.at += 3.0
        again = second.recover(train)
    assert again == 0.0
    assert second.view.log.open_landings(train.name) == ()
    assert two.junction.world.task(two.task).landed == ""
    expected = two.lands_another(second, train) if lands else two.start

    assert two.wakes(first) == "Overtaken"

    assert two.at_hub() == expected
    assert two.junction.world.task(two.task).landed == ""
    assert two.junction.log.landed(train.name, float("inf")) == 0


@pytest.mark.parametrize("two", ["ref"], indirect=True)
def test_a_push_that_the_remote_has_received_is_refused_where_the_fence_has_moved(two) -> None:
    two.pause_at_the_hub()
    first = two.first(LONG)
    second, train = two.second()
    fence = fence_of(train.target)
    was = two.at_hub(fence)

    assert second.recover(train) == 0.0

    assert two.at_hub(fence) != was
    assert "epoch: 2" in asked(two.hub, "log", "-1", "--format=%B", fence)
    assert two.wakes(first) == "Overtaken"
    assert two.at_hub() == two.start


@pytest.mark.parametrize("two", ["ref", "wait"], indirect=True)
def test_what_arrived_before_the_next_one_looked_has_landed(two) -> None:
    first = two.first(LONG)
    (two.signs / "go").touch()
    eventually(lambda: two.at_hub() != two.start)
    second, train = two.second()

    assert second.recover(train) == 0.0

    [log] = [second.view.log]
    assert log.open_landings(train.name) == ()
    assert log.landed(train.name, float("inf")) == 1
    assert two.wakes(first) in {"Overtaken", "done"}
    assert two.at_hub() == two.junction.world.task(two.task).landed


@pytest.mark.parametrize("two", ["ref"], indirect=True)
def test_the_fence_moves_with_each_landing_and_names_its_epoch(two) -> None:
    (two.signs / "go").touch()
    world = two.junction.world
    first = two.first(LONG)
    assert two.wakes(first) == "done"

    fence = "refs/lockgate/fence/main"
    said = asked(two.hub, "log", "--reverse", "--format=%B", fence)

    assert two.at_hub() == world.task(two.task).landed != two.start
    assert said.split() == ["lockgate", "fence", "epoch:", "1", "landing:", "1"] * 2
