"""A team's repository behind a protected main: the test server, an orchestrator, people."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lockgate.core.model.task import Task, TaskId
from tests.e2e.orchestra import COMPLETE, Orchestra, hands_off, worker, writes
from tests.forge.hub import TOKEN, Hub
from tests.forge.state import Pull
from tests.scenarios.world import git

CONFIG = """\
[project]
agent = "scripted"
slots = 9
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "grep -q good answer.txt"
attempts = 1
[merge]
target = "pull_request"
mode = "auto"
[forge]
repo = "octo/demo"
settle = 0
[forge.intake]
label = "lockgate"
[retry]
max_iterations = 9
"""
LOOKS = "0.3"  # seconds between two looks


def answers(*texts: str) -> str:
    """One session of the agent for each text, which it writes into answer.txt."""
    return "".join(
        worker(
            '{ shell = "env > ~/environment" }',
            writes(text),
            '{ shell = "git commit -qam work" }',
            hands_off(text),
            COMPLETE,
        )
        for text in texts
    )


@dataclass
class Team(Orchestra):
    """An orchestrator whose repository's origin is the test server's."""

    hub: Hub = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.environ |= {
            "LOCKGATE_GITHUB_TOKEN": TOKEN,
            "LOCKGATE_GITHUB_API": self.hub.url,
            "LOCKGATE_FORGE_SECONDS": LOOKS,
        }
        for bucket in self.hub.buckets.values():
            bucket.remaining = 5_000_000  # else looks would be spread over the hour
        bare = self.hub.state.bare
        git(self.root, "remote", "add", "origin", str(self.hub.repository))
        (self.hub.repository / "protected").write_text("")
        git(self.root, "push", "--quiet", "--force", "origin", "main")
        git(self.root, "fetch", "--quiet", "origin")
        bare.protect("main")

    def issue_task(self) -> TaskId:
        """The task that the label made."""
        project = self.app.projects.here(self.root).id
        self.until(lambda: bool(self.app.store.on_branch(project, "issue-1")))
        return self.app.store.on_branch(project, "issue-1")[0].id

    def pull(self, wanted: Callable[[Pull], bool] = lambda _it: True) -> Pull:
        """The one pull request, once it is as wanted."""

        def found() -> bool:
            with self.hub.lock:
                self.hub.state.settle()
                return any(wanted(it) for it in self.hub.state.pulls.values())

        self.until(found)
        [pull] = self.hub.state.pulls.values()
        return pull

    def story(self) -> str:
        asked = "\n".join(map(str, self.hub.log[-40:]))
        return f"{super().story()}\nGitHub:\n{asked}\n{self.hub.violations}"

    def done(self, id: TaskId) -> Task:
        self.until(lambda: self.task(id).status.value == "done")
        return self.task(id)


def head_after(old: str) -> Callable[[Pull], bool]:
    return lambda it: it.sha != old


def team(place: Path, hub: Hub, script: str, config: str = CONFIG) -> Team:
    return Team(place / "team", config=config, scripts={"issue-1": script}, hub=hub)
