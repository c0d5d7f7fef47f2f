"""One home with a task in every state, made once by the commands that lead there; copies of it."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.bootstrap import App
from lockgate.core.lifecycle import evaluation, moves
from lockgate.core.model.results import Passed, SingleGateResult, Waiting
from lockgate.core.model.task import Role, Status, TaskId
from tests.faces.shell import HANDOFF, Shell, commit_config, make_repository
from tests.faces.tui.driving import Story, drive
from tests.given import PROOF

CONFIG = """\
[project]
agent = "scripted"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "true"
[[gates.list]]
name = "sign_off"
type = "human"
prompt = "Only pages of ours?"
"""
LOGIN = 'def page(request):\n    return request.args["next"]\n'
FIXED = (
    "def page(request):\n"
    '    page = request.args.get("next", "/home")\n'
    '    return page if page.startswith("/") else "/home"\n'
)
SUMMARIES = {
    "approve": "After login, go on to the page that was asked for",
    "land": "Refuse titles with a slash",
    "answer": "Export reports as CSV",
    "dead": "Show the totals of a month",
    "twice": "Sort the list of invoices by date",
    "limit": "Round prices to cents",
    "stuck": "Replace the old date parser",
    "paused": "Make the search ignore accents",
    "working": "Rename the columns of the API",
    "pending": "Send a mail after each order",
    "done": "Remove the unused settings",
    "cancelled": "Try another template engine",
}


@dataclass(frozen=True, slots=True)
class Home:
    """A shell on the home, and the ids of its tasks by what they are for."""

    shell: Shell
    ids: dict[str, TaskId]

    def drive(self, story: Story, **more) -> None:
        """No orchestrator is there, and none is started: what happens is what the test does."""
        app = self.shell.app()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LOCKGATE_NO_ORCHESTRATOR", "1")
            try:
                drive(app, story, where=self.shell.repo, **more)
            finally:
                app.close()

    def app(self) -> App:
        return self.shell.app()


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Not to be changed: for tests that only look, which is held at the end."""
    place = tmp_path_factory.mktemp("board")
    make_repository(place / "repo")
    shell = Shell(place)
    commit_config(shell, CONFIG)
    _commit(shell, "main", {"login.py": LOGIN})
    ids: dict[str, TaskId] = {}
    for name, summary in SUMMARIES.items():
        late = () if name != "pending" else ("--no-start",)
        ids[name] = TaskId(shell.did("task", "create", f"{name}-it", summary, *late).strip())
    _changes(shell, ids)
    _crashes(shell, ids)
    shell.bring(ids["stuck"], Status.STUCK)
    shell.bring(ids["paused"], Status.PAUSED_FOR_INTERVENTION)
    shell.bring(ids["cancelled"], Status.CANCELLED)
    shell.did("task", "update", ids["working"], "--status", "working")
    shell.begin(ids["working"], Role.WORKER)
    shell.write(ids["answer"], "\n## Questions\n\n- Which separator: comma or semicolon?\n")
    shell.did("task", "update", ids["answer"], "--status", "clarification")
    before = _lasting(shell)
    yield Home(shell, ids)
    assert _lasting(shell) == before


def _lasting(shell: Shell) -> dict[str, list[tuple[object, ...]]]:
    """What of the database nobody changes who only looks; statistics are counted then."""
    rows = shell.rows()
    return {name: rows[name] for name in ("tasks", "events", "drafts", "seen", "outbox")}


@pytest.fixture
def own(seeded: Home, tmp_path: Path) -> Home:
    """A copy to act on."""
    shutil.copytree(seeded.shell.home, tmp_path / "home")
    shell = Shell(tmp_path)
    shell.repo = seeded.shell.repo
    return Home(shell, seeded.ids)


def _commit(shell: Shell, branch: str, files: dict[str, str]) -> None:
    if branch != "main":
        shell.git("switch", "--quiet", "--create", branch, "main")
    for name, text in files.items():
        (shell.repo / name).parent.mkdir(parents=True, exist_ok=True)
        (shell.repo / name).write_text(text, encoding="utf-8")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "--message", f"Work on {branch}")
    shell.git("switch", "--quiet", "main")


def _changes(shell: Shell, ids: dict[str, TaskId]) -> None:
    """One waits for a yes, one to land, one has been sent back too often, one is in main."""
    _commit(shell, "approve-it", {"login.py": FIXED, ".github/ci.yml": "on: push\n"})
    _commit(shell, "land-it", {"names.py": "def slug(title):\n    return title.lower()\n"})
    _commit(shell, "limit-it", {"prices.py": "ROUND = 2\n"})
    _commit(shell, "done-it", {"settings.py": "UNUSED = None\n"})
    for name in ("approve", "land", "done"):
        hand_in(shell, ids[name])
    for name in ("land", "done"):
        shell.did("approve", ids[name])
    shell.git("merge", "--quiet", "done-it")
    shell.did("task", "update", ids["done"], "--status", "done")
    for number in range(3):
        hand_in(shell, ids["limit"], f"try {number}")
        shell.did("reject", ids["limit"], "-m", f"Still wrong, {number}.")


def hand_in(shell: Shell, id: TaskId, said: str = "the work") -> None:
    """As an agent hands in and the gates judge, up to the human's."""
    if shell.status(id) is not Status.WORKING:
        shell.did("task", "update", id, "--status", "working")
    text = shell.file(id).read_text(encoding="utf-8")
    shell.file(id).write_text(f"{text.partition('## Handoff')[0]}{HANDOFF}{said}\n", "utf-8")
    shell.did("task", "update", id, "--status", "agent-review")
    app = shell.app()
    task = app.store.load(id)
    change = app.workspaces.adopt(app.store.project(task.project), task)
    assert change is not None
    facts = moves.Facts(change.patch)
    app.coordinator.turn(
        id,
        lambda seen: moves.change_taken(seen, change.commit, change.files, task.since, facts),
    )
    proof = replace(PROOF, commit=change.commit)
    results: list[SingleGateResult] = [
        Passed("tests", proof),
        Waiting("sign_off", "Only pages of ours?"),
    ]
    app.coordinator.turn(id, lambda seen: evaluation.judged(seen, results, task.since))
    app.store.close()


def _crashes(shell: Shell, ids: dict[str, TaskId]) -> None:
    for name, times in (("dead", 1), ("twice", 2)):
        shell.did("task", "update", ids[name], "--status", "working")
        for _ in range(times):
            shell.begin(ids[name], Role.WORKER)
            shell.dies(ids[name])
