"""The scripted agent, played for real: what its steps do, and which entry a session plays."""

import json
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from lockgate.adapters.harnesses import Registry
from lockgate.core.config.settings import Settings
from lockgate.core.model.agents import Ending, Exit, Job, Launch, Report
from lockgate.core.model.task import Role
from lockgate.errors import BadConfig
from tests.adapters.measuring import measured

pytestmark = pytest.mark.measured

SETTINGS = Settings(formula="none", gates=())
SHELL = '#!/bin/sh\necho "$@" >> lockgate-calls\n'


class Stage:
    """A workspace and a home, in which sessions are played one after the other."""

    def __init__(self, root: Path) -> None:
        self.workspace, self.home, self.bin = root / "workspace", root / "agent", root / "bin"
        for directory in (self.workspace / ".lockgate", self.home, self.bin):
            directory.mkdir(parents=True)
        lockgate = self.bin / "lockgate"
        lockgate.write_text(SHELL, encoding="utf-8")
        lockgate.chmod(0o755)
        self.said = ""

    def script(self, name: str = "script.toml", **roles: object) -> None:
        path = self.workspace / ".lockgate" / name
        path.parent.mkdir(exist_ok=True)
        text = json.dumps(roles) if name.endswith(".json") else _toml(roles)
        path.write_text(text, encoding="utf-8")

    def job(self, session: str = "s1", **more) -> Job:
        about = {"prompt": "go", "role": Role.WORKER, "task": "fix-3f9a"} | more
        return Job(session=session, home=str(self.home), workspace=str(self.workspace), **about)

    def start(self, job: Job) -> subprocess.Popen[str]:
        launch = Registry().launch("scripted", SETTINGS, job)
        for name, text in launch.files.items():
            (self.home / name).write_text(text, encoding="utf-8")
        return _started(launch, self)

    def play(self, session: str = "s1", **more) -> Report:
        process = self.start(self.job(session, **more))
        self.said, _ = process.communicate(timeout=30)
        code = process.returncode if process.returncode >= 0 else None
        return Registry().read(
            "scripted", SETTINGS, self.said, Exit(ending=Ending.EXITED, code=code)
        )

    def calls(self) -> list[str]:
        return (self.workspace / "lockgate-calls").read_text(encoding="utf-8").splitlines()


def _started(launch: Launch, stage: Stage) -> subprocess.Popen[str]:
    env = {"PATH": f"{stage.bin}:/usr/bin:/bin", "HOME": str(stage.home), **launch.env}
    process = subprocess.Popen(
        measured(launch.argv, env),
        cwd=stage.workspace,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(launch.stdin or "")
    process.stdin.close()
    process.stdin = None
    return process


def _toml(roles: dict[str, object]) -> str:
    """Every entry as one table with its steps in one line."""
    lines: list[str] = []
    for role, entries in roles.items():
        for entry in entries:  # type: ignore[attr-defined]  # a list of entries, as the test wrote it
            lines += [f"[[{role}]]", *(f"{key} = {_value(value)}" for key, value in entry.items())]
    return "\n".join(lines)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(it)}" for key, it in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def steps(*them: Mapping[str, object], **more: object) -> dict[str, object]:
    return {"steps": list(them), **more}


def says(words: str, **more: object) -> dict[str, object]:
    return steps({"say": words}, **more)


def test_a_worker_writes_files_and_its_handoff_and_tells_lockgate(stage) -> None:
    (stage.workspace / "old.py").touch()
    task = "---\nid: fix-3f9a\n---\n## Handoff\nstale\n## Notes\nkept\n"
    (stage.workspace / "TASK.md").write_text(task, encoding="utf-8")
    stage.script(
        worker=[
            steps(
                {"write": "src/new.py", "text": "x = 1\n"},
                {"append": "src/new.py", "text": "y = 2\n"},
                {"delete": "old.py"},
                {"shell": "wc -l < src/new.py > lines"},
                {"section": "Handoff", "text": "DONE: all\nREMAINING: nothing"},
                {"signal": "complete"},
            )
        ]
    )

    report = stage.play()

    assert report == Report(native="s1")
    assert (stage.workspace / "src/new.py").read_text(encoding="utf-8") == "x = 1\ny = 2\n"
    assert (stage.workspace / "lines").read_text(encoding="utf-8").strip() == "2"
    assert not (stage.workspace / "old.py").exists()
    assert (stage.workspace / "TASK.md").read_text(encoding="utf-8") == (
        "---\nid: fix-3f9a\n---\n## Handoff\nDONE: all\nREMAINING: nothing\n## Notes\nkept\n"
    )
    assert stage.calls() == ["task complete"]


@pytest.mark.parametrize(
    ("word", "stop", "call"),
    [
        ("complete", (), "task complete"),
        ("update clarification", (), "task update --status clarification"),
        ("checkpoint", (), "checkpoint --task-id fix-3f9a --done"),
        ("checkpoint", ("lockgate", "from", "the", "job"), "from the job"),
    ],
)
def test_a_signal_is_a_command_of_lockgate(stage, word, stop, call) -> None:
    stage.script(worker=[steps({"signal": word})])

    stage.play(stop_command=stop)

    assert stage.calls() == [call]


def test_what_it_used_and_said_is_in_its_report(stage) -> None:
    use = {"usage": {"usd": 0.25, "tokens": 100}}
    stage.script(worker=[steps(use, {"say": "half way"}, use, {"say": "done"})])

    report = stage.play(native="before")

    assert (report.native, report.said) == ("before", "done")
    assert (report.usage.usd, report.usage.tokens, report.cumulative) == (0.5, 200, False)


def test_each_session_plays_the_next_entry_and_the_last_one_repeats(stage) -> None:
    stage.script(worker=[says("first"), says("second")], reviewer=[says("looks good")])

    said = [stage.play(name).said for name in ("s1", "s2", "s3")]
    review = stage.play("r1", role=Role.REVIEWER).said

    assert said == ["first", "second", "second"]
    assert review == "looks good"


def test_a_session_that_is_started_again_plays_its_entry_again(stage) -> None:
    stage.script(worker=[steps({"crash": "KILL"}), says("second")])

    played = [stage.play(name) for name in ("s1", "s1", "s2", "s1")]

    assert [it.said for it in played] == ["", "", "second", ""]
    assert played[0].failure == "a signal ended it"


def test_a_condition_is_looked_for_in_the_prompt_and_counts_by_itself(stage) -> None:
    careful = [says("S1", when="security"), says("S2", when="security")]
    stage.script(reviewer=[says("any"), *careful])

    def review(session: str, prompt: str) -> str:
        report: Report = stage.play(session, prompt=prompt, role=Role.REVIEWER)
        return report.said

    assert review("r1", "look at security") == "S1"
    assert review("r2", "look at style") == "any"
    assert review("r3", "look at security") == "S2"


@pytest.mark.parametrize(
    ("name", "wins"),
    [
        ("agents/fix-3f9a.toml", True),
        ("agents/fix-3f9a.json", True),
        ("agents/fix.toml", True),
        ("agents/other.toml", False),
    ],
)
def test_a_script_by_the_tasks_id_or_branch_wins_over_the_common_one(stage, name, wins) -> None:
    (stage.workspace / "TASK.md").write_text("---\nbranch: fix\n---\n", encoding="utf-8")
    stage.script(worker=[says("common")])
    stage.script(name, worker=[says("own")])

    assert stage.play().said == ("own" if wins else "common")


def test_the_variable_wins_over_every_script_in_the_repository(stage, tmp_path) -> None:
    stage.script(worker=[says("common")])
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(json.dumps({"worker": [says("elsewhere")]}), encoding="utf-8")

    assert stage.play(environ={"LOCKGATE_SCRIPT": str(elsewhere)}).said == "elsewhere"


def test_a_variable_that_names_no_script_is_told_before_anything_starts(stage) -> None:
    job = stage.job(environ={"LOCKGATE_SCRIPT": "/nowhere.toml"})

    with pytest.raises(BadConfig, match=r"/nowhere\.toml"):
        Registry().launch("scripted", SETTINGS, job)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "it looked for .lockgate/agents/fix-3f9a.toml"),
        ("[[worker]]\nsteps = [{dance = 1}]", "no step is called dance"),
        ("[[worker]]\nsteps = [{signal = 'sing'}]", "signal: KeyError"),
        ("[[worker]]\nsteps = [{write = '/proc/no/such'}]", "write: "),
        ("[[worker]]\nsteps = 3", "steps is not a list"),
        ("worker = [1]", "[[worker]] is not a list of tables"),
        ("[[reviewer]]", "no [[worker]] for this session"),
        ("[[[", ".lockgate/script.toml: "),
    ],
)
def test_a_script_that_cannot_be_played_says_why(stage, text, why) -> None:
    if text is not None:
        (stage.workspace / ".lockgate/script.toml").write_text(text, encoding="utf-8")

    assert why in stage.play().failure


@pytest.mark.parametrize(
    ("how", "code"), [(3, 3), ("KILL", -signal.SIGKILL), ("SEGV", -signal.SIGSEGV)]
)
def test_a_crash_is_a_real_one(stage, how, code) -> None:
    stage.script(worker=[steps({"say": "so far"}, {"crash": how}, {"say": "never"})])

    process = stage.start(stage.job())
    said, _ = process.communicate(timeout=30)

    assert process.returncode == code
    assert "so far" in said
    assert "never" not in said


def test_an_exit_in_good_order_may_have_any_code(stage) -> None:
    stage.script(worker=[steps({"exit": 0}, {"say": "never"}), steps({"exit": 7})])

    assert stage.play("s1").failure == ""
    assert stage.play("s2").failure == "it exited 7"


def test_an_exhausted_context_and_a_usage_limit_are_reported(stage) -> None:
    stage.script(
        worker=[steps({"exhaust": True}), steps({"limit": 3600}), steps({"limit": 0}), says("on")]
    )

    full, limited, unknown, free = (stage.play(name) for name in ("s1", "s2", "s3", "s4"))

    assert full.exhausted
    assert limited.limited_until == pytest.approx(time.time() + 3600, abs=60)
    assert unknown.limited_until == 0
    assert (free.exhausted, free.limited_until) == (False, None)


def test_it_can_ignore_what_asks_it_to_end(stage) -> None:
    stage.script(worker=[steps({"ignore_term": True}, {"say": "ready"}, {"hang": True})])
    process = stage.start(stage.job())
    assert process.stdout is not None
    while "ready" not in process.stdout.readline():
        pass

    process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.5)
    process.kill()

    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL


def test_it_can_leave_a_process_behind(stage) -> None:
    stage.script(worker=[steps({"daemon": 1.5}, {"say": "gone"})])
    process = stage.start(stage.job())

    code = process.wait(timeout=30)

    assert code == 0
    begin = time.monotonic()
    process.communicate(timeout=30)  # its output stays open as long as the process it left
    assert time.monotonic() - begin > 0.5


def test_it_can_print_a_great_deal(stage) -> None:
    stage.script(worker=[steps({"flood": 3_000_000}, {"say": "done"}, {"sleep": 0.01})])

    report = stage.play()

    assert report.said == "done"
    assert len(stage.said) > 3_000_000


def test_output_that_is_cut_anywhere_is_still_read(stage) -> None:
    use = {"usage": {"usd": 0.25, "tokens": 100}}
    stage.script(worker=[steps(use, {"say": "a"}, use, {"say": "b"})])
    stage.play()

    ended = Exit(ending=Ending.WALL_CLOCK)
    reports = [
        Registry().read("scripted", SETTINGS, stage.said[:n] + stage.said[m:], ended)
        for n in range(0, len(stage.said), 7)
        for m in range(n, len(stage.said), 11)
    ]

    assert all(it.usage.usd in {0, 0.25, 0.5} and it.said in {"", "a", "b"} for it in reports)


def test_it_is_always_there_and_shows_what_it_runs_on() -> None:
    registry = Registry(search="/nowhere")

    assert registry.missing("scripted", SETTINGS) is None
    assert any(path.endswith("scripted_player.py") for path in registry.paths("scripted", SETTINGS))
    assert "LOCKGATE_SCRIPT" in registry.variables("scripted", SETTINGS)
    assert registry.can_resume("scripted", SETTINGS)
