"""A real agent under a real orchestrator, and what its model is to say in each part of a task."""

import json
import socket
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from lockgate.adapters.harnesses import Registry
from lockgate.core.model.task import Role, Session, Task, TaskId
from tests.e2e.agents import test_agents
from tests.e2e.agents.fake_model import serve
from tests.e2e.agents.stage import AGENTS, PATH, SETTINGS, URL, Answers
from tests.e2e.agents.test_agents import SHELL, Case
from tests.e2e.orchestra import Orchestra

PATIENCE = 180.0
TASK_FILE = "/workspace/TASK.md"
CONFIG = """\
[project]
agent = "{agent}"
[gates]
formula = "none"
[[gates.list]]
name = "tests"
type = "command"
command = "grep -q hello hello.txt"
"""
REVIEW = """\
[[gates.list]]
name = "review"
type = "parallel_review"
dimensions = ["general"]
"""
PRICED = {
    "ANTHROPIC_API_KEY": "dummy",
    "ANTHROPIC_BASE_URL": URL,
    "OPENCODE_MODEL": "anthropic/claude-sonnet-4-5",
}
# opencode knows what a model costs only where it knows the model.
CASES = [
    replace(it, environ=PRICED, costs=True) if it.agent == "opencode" else it
    for it in test_agents.CASES
]
by_agent = pytest.mark.parametrize("case", CASES, ids=str)
with_hooks = pytest.mark.parametrize("case", [it for it in CASES if it.hooks], ids=str)
resuming = [it for it in CASES if not it.hooks and it.agent != "aider"]
without_hooks = pytest.mark.parametrize("case", resuming, ids=str)


class Whole(Struct, frozen=True):
    """One task of a real agent, from the outside."""

    orchestra: Orchestra
    log: Path
    id: TaskId

    @property
    def task(self) -> Task:
        return self.orchestra.task(self.id)

    def sessions(self, role: Role = Role.WORKER) -> list[Session]:
        return [it for it in self.orchestra.app.store.sessions(self.id) if it.role is role]

    def settle(self) -> None:
        """Until gates and agents have said all they will."""
        store = self.orchestra.app.store

        def done() -> bool:
            return self.task.rev > 1 and self.orchestra.settled(self.id)

        self.orchestra.until(lambda: bool(store.sessions(self.id)), PATIENCE)
        self.orchestra.until(done, PATIENCE)

    def types(self) -> list[str]:
        return self.orchestra.types(self.id)

    def log_of_the_orchestrator(self) -> str:
        return (self.orchestra.place / "orchestrator.log").read_text(errors="replace")

    def requests(self) -> list[str]:
        """What the model was sent, a text each, with the tools' own descriptions left out."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        bodies = [json.loads(line)["body"] for line in lines]
        return [json.dumps({**it, "tools": []}, ensure_ascii=False) for it in bodies]


@contextmanager
def at_work(
    case: Case,
    place: Path,
    answers: Answers,
    *,
    gates: str = "",
    wall: float = 0,
    login: bool = True,
) -> Generator[Whole]:
    """A task for its agent; without an answer the model is down."""
    if Registry(search=PATH).missing(case.agent, SETTINGS):
        pytest.skip(f"needs {case.agent}: sh scripts/install_agents.sh {AGENTS}")
    log, temporary = place / "log", place / "tmp"
    temporary.mkdir(parents=True)
    with ExitStack() as after:
        url = f"http://127.0.0.1:{_port(case, answers, log, after)}"
        it = Orchestra(place / "place", config=CONFIG.format(agent=case.agent) + gates)
        given = {name: value.replace(URL, url) for name, value in case.environ.items()}
        it.environ |= {**(given if login else {}), "PATH": PATH, "TMPDIR": str(temporary)}
        if wall:
            it.environ["LOCKGATE_WALL_SECONDS"] = str(wall)
        after.callback(it.close)
        it.up()
        id = it.create("say-hello", context="Say hello.")
        it.wake()
        yield Whole(it, log, id)


def works(case: Case, word: str, *, before: str = "", says: str = "All done.") -> Answers:
    """The file with that word and a Handoff that says so; `before` is what both had until now."""
    if case.agent == "aider":
        return [{"text": _edits(word, before, says)}]
    write = f"echo {word} > hello.txt"
    hand_off = f"printf '## Handoff\\nDONE: {word}\\n' >> TASK.md"
    if before:
        hand_off = f"sed -i 's/^DONE: .*/DONE: {word}/' TASK.md"
    return [shell(case, f"{write}; {hand_off}"), {"text": says}]


def shell(case: Case, command: str) -> dict[str, Any]:
    told = case.work[0]
    return told | {"input": {k: command if v == SHELL else v for k, v in told["input"].items()}}


def reviews(case: Case) -> Answers:
    """A verdict, by the program's own way to change a file."""
    old, new = "## Handoff", "## Review\nPASS\n\n## Handoff"
    read: Answers = [{"tool": "Read", "input": {"file_path": TASK_FILE}}]
    match case.agent:
        case "claude":
            edit = {"file_path": TASK_FILE, "old_string": old, "new_string": new}
            called = [*read, {"tool": "Edit", "input": edit}]
        case "codex":
            lines = "\n".join(f"+{line}" for line in new.split("\n"))
            patch = f"*** Begin Patch\n*** Update File: TASK.md\n@@\n-{old}\n{lines}\n"
            called = [{"tool": "apply_patch", "input": f"{patch}*** End Patch"}]
        case "gemini":
            edit = {"file_path": TASK_FILE, "old_string": old, "new_string": new}
            called = [{"tool": "replace", "input": {**edit, "instruction": "Give the verdict."}}]
        case "opencode":
            edit = {"filePath": TASK_FILE, "oldString": old, "newString": new}
            read = [{"tool": "read", "input": {"filePath": TASK_FILE}}]
            called = [*read, {"tool": "edit", "input": edit}]
        case _:
            return [{"text": f"It is good.\n\n{_block('TASK.md', old, new)}"}]
    return [*called, {"text": "Reviewed."}]


def _port(case: Case, answers: Answers, log: Path, after: ExitStack) -> int:
    if not answers:
        with closing(socket.create_server(("127.0.0.1", 0))) as nobody:
            port: int = nobody.getsockname()[1]
            return port
    server = serve(case.says(*answers), log)
    after.callback(server.server_close)
    after.callback(server.shutdown)
    return server.server_port


def _edits(word: str, before: str, says: str) -> str:
    handoff = f"Say hello.\n## Handoff\nDONE: {word}"
    told = ("Say hello.", handoff) if not before else (f"DONE: {before}", f"DONE: {word}")
    return f"{says}\n\n{_block('hello.txt', before, word)}\n{_block('TASK.md', *told)}"


def _block(name: str, old: str, new: str) -> str:
    search = f"{old}\n" if old else ""
    return f"{name}\n```\n<<<<<<< SEARCH\n{search}=======\n{new}\n>>>>>>> REPLACE\n```\n"
