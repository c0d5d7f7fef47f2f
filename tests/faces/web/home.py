"""A home with a project, real changes in git, and tasks in every state that a board shows."""

from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from lockgate.bootstrap import App, open_app
from lockgate.core.lifecycle.decision import Decision, MirrorTask
from lockgate.core.model.events import StatusChanged
from lockgate.core.model.findings import Finding, GateFeedback, Location, Priority
from lockgate.core.model.task import (
    Actor,
    Cause,
    IterationOutcome,
    IterationRecord,
    Role,
    Session,
    SessionId,
    Status,
    Task,
    TaskId,
)
from lockgate.ports import Change, Project
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.tasks import NewTask
from tests.agreeing import agree
from tests.scenarios.world import a_repository, git

CONFIG = """\
[project]
agent = "scripted"
[commands]
test = "true"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "true"
[[gates.list]]
name = "sign_off"
type = "human"
prompt = "Does it only ever go to pages of ours?"
[protect]
paths = ["login.py"]
"""
LOGIN = '''"""Where a person goes after the login."""

from shop.web import redirect, request


def after_login():
    """The page that was asked for, else the first one."""
    return redirect(request.args["next"])
'''
FIXED = '''"""Where a person goes after the login."""

from shop.web import redirect, request

HOME = "/home"


def after_login():
    """The page that was asked for, where it is one of ours; else the first one."""
    page = request.args.get("next", HOME)
    return redirect(page if page.startswith("/") and not page.startswith("//") else HOME)
'''
TESTS = """\
from login import after_login


def test_a_page_of_ours_is_shown(ask):
    assert ask(after_login, next="/cart") == "/cart"


def test_a_foreign_page_is_not_shown(ask):
    assert ask(after_login, next="https://evil.example") == "/home"
"""


@dataclass
class Home:
    place: Path
    app: App
    projects: dict[str, Project] = field(default_factory=dict)

    def project(self, name: str) -> Project:
        if name not in self.projects:
            root = a_repository(self.place / name, CONFIG)
            (root / "login.py").write_text(LOGIN)
            git(root, "add", "--all")
            git(root, "commit", "--quiet", "--message", "The login")
            agree(root, {"LOCKGATE_HOME": str(self.app.home)})
            self.projects[name] = self.app.projects.here(root)
        return self.projects[name]

    def task(self, branch: str, summary: str, project: str = "shop", **more: object) -> Task:
        asked = NewTask(branch=branch, summary=summary, **more)  # type: ignore[arg-type]  # a test's own
        return self.app.tasks.create(self.project(project), asked, HUMAN)

    def started(self, branch: str, summary: str, project: str = "shop", **more: object) -> Task:
        """Working, with the rules of its base."""
        task = self.task(branch, summary, project, **more)
        rules = self.app.configuration.rules_of(self.project(project))
        return self.put(task, Status.WORKING, pinned=rules, iteration=1)

    def changed(self, task: Task, files: dict[str, str]) -> Task:
        """With a real change, as the gates judge it."""
        project = self.app.store.project(task.project)
        place = self.app.workspaces.prepare(project, task)
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        found = self.app.workspaces.take(project, task)
        assert isinstance(found, Change), found
        protected = tuple(it for it in found.files if it == "login.py")
        return self.put(
            task,
            task.status,
            candidate=found.commit,
            patch=found.patch,
            size=found.size,
            protected=protected,
        )

    def waiting(self, task: Task) -> Task:
        """A human's gate waits for a yes."""
        return self.put(
            task,
            Status.AGENT_REVIEW,
            waiting="sign_off",
            passed=("tests",),
            asked="Does it only ever go to pages of ours?",
        )

    def sent_back(self, task: Task, file: str, line: int, issue: str) -> Task:
        found = Finding(Priority.P2_MINOR, issue, Location(file, line))
        told = GateFeedback(
            gate_name="review", findings=(found,), summary=issue, suggested_action=""
        )
        record = IterationRecord(
            iteration=1,
            agent_id="a",
            outcome=IterationOutcome.FAILED_WITH_RETRY,
            feedback=told,
        )
        return self.put(task, task.status, history=(record,), iteration=2)

    def spoke(self, task: Task, text: str) -> Task:
        """An agent has worked on it, and written that to its output."""
        now = self.app.witness.clock.now()
        session = Session(
            id=SessionId(f"{task.id}.1"),
            task=task.id,
            role=Role.WORKER,
            round=0,
            generation=1,
            token_hash=f"hash of {task.id}",
            started=now - 60,
            ended=now,
            agent="scripted",
            usd=0.3,
        )
        found = replace(self.load(task.id), rev=self.load(task.id).rev + 1)
        self.app.store.commit(Decision(found, session=session))
        place = self.app.home / "sessions" / session.id
        place.mkdir(parents=True)
        (place / "stdout.log").write_text(text)
        return found

    def put(self, task: Task, status: Status, **more: object) -> Task:
        """The task as a test wants it, by a decision like any other."""
        now = self.app.witness.clock.now()
        moved = status is not task.status
        made = replace(
            task,
            rev=task.rev + 1,
            status=status,
            updated=now,
            entered=now if moved else task.entered,
            since=task.rev + 1 if moved else task.since,
            **more,
        )
        event = StatusChanged(
            source=task.status, target=status, actor=Actor.HUMAN, cause=None, reason=""
        )
        self.app.store.commit(Decision(made, (event,), (MirrorTask(),)))
        self.app.coordinator.effector.carry_out(made.id)
        return made

    def load(self, id: str) -> Task:
        return self.app.store.load(TaskId(id))


def a_home(place: Path) -> Home:
    return Home(place, open_app({"LOCKGATE_HOME": str(place / "home")}))


def a_shop(place: Path) -> Home:
    """The home that most pages are looked at with: two projects, something in every state."""
    home = a_home(place)
    review = home.started(
        "fix-login",
        "After the login, go on to the page that was asked for",
        context="People who follow a link from a mail land on the first page after the login.\n\n"
        "They should see the page of the link.",
    )
    review = home.changed(review, {"login.py": FIXED, "tests/test_login.py": TESTS})
    review = home.sent_back(review, "login.py", 10, "name the constant")
    home.waiting(home.put(review, review.status, usd=0.82, tokens=41_000))
    asks = home.started("csv-export", "Export the orders as CSV", "billing")
    home.put(asks, Status.CLARIFICATION, question="Comma or semicolon?\nBoth are in use.")
    stuck = home.started("rename-api", "Rename the API's fields", "billing")
    home.put(stuck, Status.STUCK, usd=1.4, cause=Cause.MAX_ITERATIONS)
    tidy = home.started("tidy-names", "Tidy the names of the helpers")
    home.spoke(tidy, "I look at the helpers first.\nThere are four of them.\n")
    home.task("dark-mode", "Offer a dark mode", auto_start=False)
    ready = home.started("add-cart", "Keep the cart when a person logs in")
    ready = home.changed(ready, {"cart.py": "ITEMS = []\n"})
    home.put(ready, Status.REVIEWING, passed=("tests", "sign_off"), usd=0.4)
    done = home.started("old-one", "Say hello on the first page")
    home.put(done, Status.DONE, usd=0.2)
    return home
