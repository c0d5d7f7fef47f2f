"""A hub, and hosts that share nothing but that hub: each has a home of its own."""

import hashlib
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from lockgate.adapters.hub import GitExchange
from lockgate.adapters.repository import GitRepository
from lockgate.adapters.train import GitYard
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.bootstrap.rules import placed, repository_of
from lockgate.core.config.settings import MergeFence, MergeStrategy
from lockgate.core.model.task import Pinned, ProjectId, Status, Task, TaskId
from lockgate.core.train.model import Built, Commit
from lockgate.ports import Candidate, Change, Load, Project, Target, candidate_of
from tests.adapters.workshop import asked, git
from tests.given import a_task

TASK = TaskId("fix-login-3f9a")


@dataclass
class Host:
    home: Path
    url: str
    workspaces: GitWorkspaces = field(init=False)
    yard: GitYard = field(init=False)
    exchange: GitExchange = field(init=False)
    repository: GitRepository = field(init=False)

    def __post_init__(self) -> None:
        self.exchange = GitExchange(self.home)
        self.workspaces = GitWorkspaces(self.home, sandboxed=False)
        self.workspaces.hub = self.exchange
        self.yard = GitYard(self.home, hub=self.exchange)
        self.repository = repository_of(self.home)

    @property
    def project(self) -> Project:
        id = ProjectId(hashlib.sha256(self.url.encode()).hexdigest()[:16])
        made = Project(id=id, name="the project", common_dir="/no", root="/no", url=self.url)
        return placed(self.home, made)

    @property
    def mirror(self) -> Path:
        return Path(self.project.common_dir)

    @property
    def judge(self) -> Path:
        return self.mirror.with_name("judge.git")

    @property
    def target(self) -> Target:
        named = {"branch": "main", "remote": "origin", "fence": MergeFence.REF}
        return Target(project=self.project, **named)  # type: ignore[arg-type]  # a test's own

    def works(self, task: Task, name: str, text: str = "x\n") -> Change:
        """An agent writes a file in the task's clone; the work is taken."""
        place = self.workspaces.prepare(self.project, task)
        (place / name).write_text(text)
        return self.takes(task)

    def takes(self, task: Task) -> Change:
        taken = self.workspaces.take(self.project, task)
        assert isinstance(taken, Change)
        return taken

    def builds(self, *changes: tuple[Task, str]) -> Built:
        loads = [Load(it.id, Commit(commit), f"Land {it.id}") for it, commit in changes]
        onto = self.yard.tip(self.target).commit
        built = self.yard.build(self.target, onto, loads, MergeStrategy.MERGE)
        assert isinstance(built, Built), built
        return built

    def candidate(self, task: Task, commit: str) -> Candidate:
        return candidate_of(self.project, task, commit)


@dataclass
class Fleet:
    place: Path
    url: str = ""
    hosts: dict[str, Host] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root, self.hub = self.place / "the user's", self.place / "the hüb.git"
        self.root.mkdir()
        git(self.root, "init", "--quiet", "--initial-branch=main")
        self.user_commits("a.txt", "one\n")
        git(self.place, "clone", "--quiet", "--bare", str(self.root), str(self.hub))
        git(self.root, "remote", "add", "origin", str(self.hub))
        self.url = self.url or str(self.hub)

    def host(self, name: str) -> Host:
        if name not in self.hosts:
            self.hosts[name] = Host(self.place / f"home of {name}", self.url)
        return self.hosts[name]

    def user_commits(self, name: str, text: str = "x\n") -> str:
        (self.root / name).write_text(text)
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--message", name)
        return asked(self.root, "rev-parse", "HEAD")

    def user_pushes(self, name: str) -> str:
        made = self.user_commits(name)
        git(self.root, "push", "--quiet", "origin", "HEAD:main")
        return made

    def at_hub(self, ref: str = "refs/heads/main") -> str:
        return asked(self.hub, "rev-parse", "--verify", ref)

    def message(self, ref: str) -> str:
        return asked(self.hub, "log", "-1", "--format=%B", ref)

    def refs(self, root: str = "refs/lockgate") -> list[str]:
        return asked(self.hub, "for-each-ref", "--format=%(refname)", root).splitlines()

    def objects(self) -> int:
        said = asked(self.hub, "count-objects", "-v").split()
        facts = dict(zip(said[::2], said[1::2], strict=True))
        return int(facts["count:"]) + int(facts["in-pack:"])

    def task(self, id: str = TASK, generation: int = 1, **more: object) -> Task:
        pinned = Pinned(base_commit=self.at_hub(), config_hash="c", sandboxed=False)
        given = {"id": TaskId(id), "branch": id, "pinned": pinned, "generation": generation}
        return replace(a_task(Status.WORKING), **(given | more))

    def goes_away(self) -> None:
        self.hub.rename(self.hub.with_name("gone"))


def config(place: Path, *argv: str) -> None:
    subprocess.run(("git", "-C", str(place), "config", *argv), check=True, capture_output=True)
