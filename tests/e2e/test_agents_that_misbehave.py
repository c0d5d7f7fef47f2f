"""Agents that hang, flood, lie, leave things behind; repositories as they really are."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.task import Cause, Role, Status
from lockgate.services.task.callers import HUMAN
from tests.e2e.orchestra import COMPLETE, CONFIG, REVIEWER, Orchestra, hands_off, worker, writes
from tests.given import needs_human
from tests.scenarios.world import git

S = Status
GOOD = (writes("good"), hands_off("good"), COMPLETE)
DISK = "[sandbox]\nsession_disk_mb = 20\n"
Make = Callable[..., Orchestra]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Orchestra] = []

    def orchestra(script: str, config: str = CONFIG, **scripts: str) -> Orchestra:
        made.append(Orchestra(tmp_path, config, {"work": script, **scripts}))
        return made[-1]

    yield orchestra
    for it in made:
        it.close()


@pytest.mark.slow
def test_an_agent_that_exits_0_having_done_nothing_has_crashed(make) -> None:
    it = make(worker("{ exit = 0 }"))
    id = it.create("work")
    it.up()

    task = it.until_status(id, S.STUCK)

    assert task.cause is Cause.CRASH_THRESHOLD
    assert it.types(id).count("agent.crashed") == 2
    assert it.types(id).count("agent.asked") == 2


def test_an_agent_that_floods_its_output_costs_neither_disk_nor_its_task(make) -> None:
    it = make(worker("{ flood = 200000000 }", *GOOD) + REVIEWER)
    id = it.create("work")
    it.up()

    it.until_status(id, S.REVIEWING)

    logs = sum(path.stat().st_size for path in (it.home / "sessions").rglob("*.log*"))
    assert logs < 64 << 20


def test_an_agent_that_fills_the_disk_is_ended_and_its_task_waits_for_a_human(make) -> None:
    fills = '{ shell = "head -c 40000000 /dev/urandom > big" }'
    it = make(worker(fills, "{ hang = true }"), CONFIG + DISK)
    id = it.create("work")
    it.up()

    task = it.until_status(id, S.STUCK)

    assert task.cause is Cause.BUDGET
    assert "agent.crashed" not in it.types(id)
    assert "session_disk_mb = 20" in needs_human(task)


def test_a_daemon_that_an_agent_leaves_behind_does_not_survive_it(make) -> None:
    it = make(worker("{ daemon = 600 }", *GOOD) + REVIEWER)
    id = it.create("work")
    it.up()

    it.until_status(id, S.REVIEWING)
    it.until(lambda: it.settled(id))

    it.until(lambda: not it.left_over(), 10)


def test_a_cancelled_task_ends_an_agent_that_ignores_term(make) -> None:
    it = make(worker("{ ignore_term = true }", "{ hang = true }"))
    id = it.create("work")
    it.up()
    it.until(lambda: it.starts(id) == 1)

    it.app.coordinator.move(id, Move(S.CANCELLED), HUMAN)
    it.wake()

    it.until(lambda: it.settled(id))
    it.until(lambda: not it.left_over(), 10)
    assert not (it.home / "workspaces" / id).exists()


def test_a_hanging_agent_is_ended_when_its_budget_of_time_is_used_up(make) -> None:
    it = make(worker("{ hang = true }"), CONFIG + "[budget]\ntask_minutes = 1\n")
    id = it.create("work")
    it.up()
    it.until(lambda: it.starts(id) == 1)
    [session] = it.app.store.sessions(id)
    spec = (it.home / "sessions" / session.id / "spec.json").read_text()

    assert '"wall_seconds": 60' in spec


@pytest.mark.slow
def test_a_task_md_that_was_written_half_is_no_handoff(make) -> None:
    broken = "{ shell = \"printf '---\\\\nid: x\\\\n## Hando' > TASK.md\" }"
    it = make(worker(broken, "{ exit = 0 }") + worker(*GOOD) + REVIEWER)
    id = it.create("work")
    it.up()

    task = it.until_status(id, S.REVIEWING)

    assert "agent.asked" in it.types(id)
    assert task.failed_attempts == 0


def test_an_agent_that_deletes_its_git_directory_loses_no_work(make) -> None:
    it = make(
        worker(writes("good"), '{ shell = "rm -rf .git" }', hands_off("x"), COMPLETE) + REVIEWER
    )
    id = it.create("work")
    it.up()

    it.until_status(id, S.REVIEWING)
    it.until(lambda: it.settled(id))

    shown = subprocess.run(
        ["git", "-C", str(it.root), "show", "work:answer.txt"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "good\n"


@pytest.mark.slow
def test_an_agent_killed_from_outside_has_crashed_and_is_respawned(make) -> None:
    it = make(worker("{ hang = true }") + worker(*GOOD) + REVIEWER)
    id = it.create("work")
    it.up()
    it.until(lambda: it.starts(id) == 1)

    for pid in _players(it):
        os.kill(pid, signal.SIGKILL)

    task = it.until_status(id, S.REVIEWING)
    assert task.failed_attempts == 1
    assert it.starts(id) == 2


def test_a_killed_runner_takes_its_agent_along_and_counts_as_one_crash(make) -> None:
    it = make(worker("{ hang = true }") + worker(*GOOD) + REVIEWER)
    id = it.create("work")
    it.up()
    it.until(lambda: it.starts(id) == 1)
    [session] = it.app.store.sessions(id)

    run = (it.home / "sessions" / session.id / "run.json").read_text()
    os.kill(int(run.split('"pid":')[1].split(",")[0].strip(" }")), signal.SIGKILL)

    task = it.until_status(id, S.REVIEWING)
    assert task.failed_attempts == 1


def test_a_reboot_moves_no_counter_and_the_session_is_taken_up_again(make) -> None:
    it = make(worker("{ hang = true }") + worker(*GOOD) + REVIEWER)
    id = it.create("work")
    it.up()
    it.until(lambda: it.starts(id) == 1)
    it.kill()
    [session] = it.app.store.sessions(id)
    run = it.home / "sessions" / session.id / "run.json"
    facts = json.loads(run.read_text())
    os.kill(facts["pid"], signal.SIGKILL)
    run.write_text(json.dumps({**facts, "boot": "another"}))  # what a machine that went down leaves

    it.up()

    task = it.until_status(id, S.REVIEWING)
    assert (task.crash_count, task.failed_attempts, it.starts(id)) == (0, 0, 2)
    assert "session.interrupted" in it.types(id)
    assert "agent.crashed" not in it.types(id)


def test_a_usage_limit_parks_the_task_and_it_goes_on_by_itself(make) -> None:
    it = make(worker("{ limit = 3 }") + worker(*GOOD) + REVIEWER)
    id = it.create("work")
    it.up()

    it.until(lambda: "usage.limited" in it.types(id))
    assert it.task(id).not_before > time.time()
    task = it.until_status(id, S.REVIEWING)

    assert (task.crash_count, task.failed_attempts) == (0, 0)


@pytest.mark.slow
def test_a_full_context_gets_a_fresh_agent(make) -> None:
    it = make(worker("{ exhaust = true }") + worker(*GOOD) + REVIEWER)
    id = it.create("work")
    it.up()

    it.until_status(id, S.REVIEWING)

    first, second = [s for s in it.app.store.sessions(id) if s.role is Role.WORKER]
    assert first.native != second.native


@pytest.mark.slow
def test_what_agents_cost_stops_the_task_at_its_budget(make) -> None:
    spends = "{ usage = { usd = 3.0, tokens = 10 } }"
    it = make(
        "".join(worker(spends, writes(f"bad {n}"), hands_off(f"{n}"), COMPLETE) for n in range(4)),
        CONFIG + "[budget]\ntask_usd = 5.0\n",
    )
    id = it.create("work")
    it.up()

    task = it.until_status(id, S.STUCK)

    assert task.cause is Cause.BUDGET
    assert task.usd == pytest.approx(6.0)
    assert it.starts(id) == 2


@pytest.mark.slow
def test_a_question_is_answered_and_the_agent_goes_on_with_the_answer(make) -> None:
    asks = (
        '{ section = "Questions", text = "Which word?" }',
        '{ signal = "update clarification" }',
    )
    it = make(worker(*GOOD, when="the word is good") + worker(*asks) + REVIEWER)
    id = it.create("work")
    it.up()
    it.until_status(id, S.CLARIFICATION)
    it.until(lambda: it.task(id).dead)

    done = it.lockgate("answer", id, "-m", "the word is good")

    assert done.returncode == 0, done.stderr
    it.until_status(id, S.REVIEWING)


def test_a_dirty_main_a_submodule_and_strange_names_are_left_as_they_are(
    make,
) -> None:
    it = make(worker(*GOOD) + REVIEWER)
    other = it.place / "other"
    other.mkdir()
    git(other, "init", "--quiet", "--initial-branch=main")
    git(other, "commit", "--quiet", "--allow-empty", "--message", "sub")
    git(
        it.root,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(other),
        "sub",
    )
    (it.root / "ein Ärger\n.txt").write_text("ü\n")
    git(it.root, "add", "--all")
    git(it.root, "commit", "--quiet", "--message", "two")
    (it.root / "answer.txt").write_text("dirty\n")
    id = it.create("work")
    it.up()

    it.until_status(id, S.REVIEWING)
    it.until(lambda: it.settled(id))

    assert (it.root / "answer.txt").read_text() == "dirty\n"
    changed = subprocess.run(
        ["git", "-C", str(it.root), "diff", "--name-only", "main", "work"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert changed.stdout == "answer.txt\n"


@pytest.mark.slow
@pytest.mark.req("R67", "R121")
def test_late_and_repeated_signals_change_nothing(make) -> None:
    again = "lockgate task complete"
    late = f'{{ shell = "{again}; {again}; sleep 1; {again}" }}'
    it = make(worker(writes("good"), hands_off("good"), late) + REVIEWER)
    id = it.create("work")
    it.up()

    it.until_status(id, S.REVIEWING)
    it.until(lambda: it.settled(id))

    assert it.types(id).count("TaskCompletionSignaled") == 1


@pytest.mark.req("R119", "R120", "R164")
def test_a_stop_hook_leaves_a_checkpoint_of_what_was_seen_and_starts_the_evaluation(make) -> None:
    hook = '{ signal = "checkpoint" }'
    it = make(worker(writes("good"), hands_off("the good word"), hook) + REVIEWER)
    id = it.create("work")
    it.up()

    it.until_status(id, S.REVIEWING)

    noted = json.loads((it.home / "tasks" / id / "checkpoints" / "001.json").read_text())
    assert noted["type"] == "final"
    assert noted["files_modified"] == ["answer.txt"]
    assert {"work_summary", "confidence", "sequence"} <= set(noted)
    assert noted["work_summary"] == "DONE: the good word"
    assert it.types(id).count("TaskCompletionSignaled") == 1
    assert "auto.advanced" not in it.types(id)


@pytest.mark.slow
def test_tasks_wait_for_those_they_depend_on(make) -> None:
    it = make(worker(*GOOD) + REVIEWER, after=worker(*GOOD) + REVIEWER)
    first = it.create("work")
    second = it.create("after", depends_on=(first,))
    it.up()
    it.until_status(first, S.REVIEWING)
    it.until(lambda: it.settled(first))
    assert it.task(second).status is S.PENDING

    git(it.root, "merge", "--quiet", "work")
    it.app.coordinator.move(first, Move(S.DONE), HUMAN)
    it.wake()

    it.until_status(second, S.REVIEWING)


@pytest.mark.slow
def test_no_more_agents_work_at_once_than_there_are_slots(make) -> None:
    slow = worker("{ sleep = 1.0 }", *GOOD) + REVIEWER
    names = [f"slow{n}" for n in range(4)]
    it = make(slow, CONFIG.replace("slots = 9", "slots = 2"), **dict.fromkeys(names, slow))
    ids = [it.create(name) for name in names]
    it.up()
    most = 0

    def done() -> bool:
        nonlocal most
        most = max(most, len(it.app.store.sessions_alive()))
        return all(it.task(id).status is S.REVIEWING for id in ids)

    it.until(done)
    assert most <= 2


def test_a_stopped_orchestrator_leaves_its_agents_running_and_the_next_takes_them_up(make) -> None:
    it = make(worker("{ sleep = 2.0 }", *GOOD) + REVIEWER)
    id = it.create("work")
    it.up()
    it.until(lambda: it.starts(id) == 1)

    it.down()
    assert _players(it)
    it.up()

    task = it.until_status(id, S.REVIEWING)
    assert (it.starts(id), task.crash_count, task.failed_attempts) == (1, 0, 0)


def test_signals_are_heard_while_no_orchestrator_is_up(make) -> None:
    it = make(worker("{ sleep = 1.0 }", *GOOD) + REVIEWER)
    id = it.create("work")
    it.up()
    it.until(lambda: it.starts(id) == 1)
    it.kill()

    it.until_status(id, S.AGENT_REVIEW)

    it.up()
    it.until_status(id, S.REVIEWING)


@pytest.mark.slow
def test_a_second_orchestrator_says_that_there_is_one(make) -> None:
    it = make(worker(*GOOD) + REVIEWER)
    it.up()
    it.until(lambda: it.lockgate("status", "--json").stdout.find('"orchestrator": null') < 0)

    second = it.lockgate("up")

    assert second.returncode == 1
    assert "one is running already" in second.stderr


def _players(it: Orchestra) -> list[int]:
    """The scripted agents of this home that are alive, as this machine numbers them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
                mounts = (entry / "mountinfo").read_text() if b"scripted_player" in line else ""
            except OSError:
                continue
            if str(it.place.name) in mounts and b"bwrap" not in line:
                found.append(int(entry.name))
    return found
