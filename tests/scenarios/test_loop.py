"""The orchestrator's loop, turned by hand: what starts, what waits, what is noticed."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.moves import Move
from lockgate.core.lifecycle.needs import NeedKind, Trouble
from lockgate.core.model.agents import Ending, Report, Usage
from lockgate.core.model.events import type_of
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.limits import ESCALATION_THRESHOLD
from lockgate.core.model.task import Actor, Cause, Role, Status, TaskId
from lockgate.errors import TransitionRefused, Unavailable
from lockgate.faces.words import board
from lockgate.ports import Unfit
from lockgate.services.agents.spawner import RECKON
from lockgate.services.orchestrator.loop import HEALTH_CHECK
from lockgate.services.task.boards import NEEDED
from lockgate.services.task.callers import Caller
from lockgate.services.task.sessions import Said
from lockgate.services.task.views import at_rest
from tests.given import HANDOFF, needs_human
from tests.scenarios.stage import Stage
from tests.scenarios.world import REVIEW_ONLY, git

S = Status
TESTS_FIRST = REVIEW_ONLY.replace(
    "[[gates.list]]",
    '[[gates.list]]\nname = "tests"\ntype = "command"\ncommand = "true"\n[[gates.list]]',
)


@pytest.fixture
def stage(tmp_path) -> Iterator[Stage]:
    made = Stage(tmp_path, TESTS_FIRST)
    yield made
    made.app.store.close()


def _working(stage: Stage) -> TaskId:
    id = stage.world.create()
    stage.turn()
    return id


def _hands_off(stage: Stage, id: TaskId, text: str = HANDOFF) -> None:
    (stage.workspaces.place(id) / "TASK.md").write_text(text)


@pytest.mark.req("R115", "R117")
def test_a_pending_task_gets_its_papers_and_its_agent(stage) -> None:
    id = _working(stage)

    [session] = stage.app.store.sessions(id)
    assert stage.sessions.runs == [session.id]
    assert stage.watch.added == [session.id]
    assert (stage.workspaces.place(id) / "TASK.md").read_text().startswith("---\nid: fix-login")
    assert '"base_commit"' in (stage.workspaces.place(id) / "task.json").read_text()
    assert "implement a task" in stage.harnesses.jobs[0].prompt
    assert stage.harnesses.jobs[0].stop_command[1:] == ("checkpoint", "--task-id", id, "--done")


@pytest.mark.req("R87", "R96", "R110")
def test_the_health_check_finds_a_death_that_no_event_told_of(stage) -> None:
    id = _working(stage)
    [session] = stage.alive(id)
    _hands_off(stage, id)
    stage.dies(session)

    stage.turn(HEALTH_CHECK - 1)
    assert stage.world.task(id).status is S.WORKING
    stage.turn(2)

    assert stage.world.task(id).status is S.AGENT_REVIEW
    assert "auto.advanced" in stage.world.types(id)


def test_between_the_sessions_of_a_health_check_the_loop_listens(stage, monkeypatch) -> None:
    monkeypatch.setattr("lockgate.services.orchestrator.loop.AT_A_TURN", 1)
    ids = [stage.world.create(f"b{number}") for number in range(2)]
    stage.turn()
    for id in ids:
        [session] = stage.alive(id)
        stage.dies(session, code=1)

    stage.time.at += HEALTH_CHECK
    stage.loop.turn()
    ended = [stage.world.types(id).count("agent.crashed") for id in ids]
    stage.loop.wait(HEALTH_CHECK)
    stage.loop.turn()

    assert sorted(ended) == [0, 1]
    assert stage.watch.waits[-1] == 0.0
    assert all(stage.world.types(id).count("agent.crashed") == 1 for id in ids)


def test_an_event_tells_at_once(stage) -> None:
    id = _working(stage)
    [session] = stage.alive(id)
    stage.dies(session, code=1)

    stage.event(session)

    assert stage.world.types(id).count("agent.crashed") == 1


@pytest.mark.req("R93")
def test_gates_are_judged_and_then_a_reviewer_is_asked_and_asked_again_when_it_dies(stage) -> None:
    id = _working(stage)
    _hands_off(stage, id)
    stage.dies(stage.alive(id)[0])
    stage.event(stage.app.store.sessions(id)[0].id)
    stage.turn()
    [reviewer] = stage.alive(id)
    assert stage.app.store.session(reviewer).role is Role.REVIEWER

    stage.dies(reviewer)
    stage.event(reviewer)
    stage.turn()

    [second] = stage.alive(id)
    assert second != reviewer
    assert stage.world.task(id).crash_count == 1


@pytest.mark.req("R111")
def test_a_dead_worker_waits_for_its_human_and_is_respawned_in_the_same_workspace(tmp_path) -> None:
    stage = Stage(tmp_path, TESTS_FIRST.replace("[gates]", 'respawn = "manual"\n[gates]', 1))
    id = _working(stage)
    stage.dies(stage.alive(id)[0], code=1)
    stage.event(stage.app.store.sessions(id)[0].id)
    stage.turn(60)
    task = stage.world.task(id)
    assert (task.crash_count, task.dead, stage.alive(id)) == (1, True, [])

    stage.app.attendance.respawn(id, "", stage.app.caller)
    stage.turn()

    first, second = stage.app.store.sessions(id)
    assert second.directory == first.directory
    assert not stage.world.task(id).dead
    stage.app.store.close()


def test_what_a_session_cost_is_counted_once_however_often_its_end_is_seen(stage) -> None:
    id = _working(stage)
    [session] = stage.alive(id)
    stage.dies(session)

    for _ in range(3):
        stage.loop.monitor.finish(session)

    task = stage.world.task(id)
    assert (task.usd, task.tokens, task.seconds) == (0.5, 10, 60.0)


def test_a_program_that_counts_all_its_runs_is_charged_for_the_difference(stage) -> None:
    stage.harnesses.report = Report(native="n1", usage=Usage(0.5, 10), cumulative=True)
    id = _working(stage)
    stage.dies(stage.alive(id)[0])
    stage.event(stage.alive(id)[0])
    stage.turn()
    stage.harnesses.report = Report(native="n1", usage=Usage(0.75, 15), cumulative=True)

    stage.dies(stage.alive(id)[0])
    stage.event(stage.alive(id)[0])

    task = stage.world.task(id)
    assert (task.usd, task.tokens) == (0.75, 15)


@pytest.mark.req("R138")
def test_the_same_agent_is_resumed_by_its_own_id(stage) -> None:
    id = _working(stage)
    stage.dies(stage.alive(id)[0], code=1)
    stage.event(stage.alive(id)[0])
    stage.turn()

    assert [job.native for job in stage.harnesses.jobs] == ["", "n1"]
    assert "interrupted" in stage.harnesses.jobs[1].prompt


@pytest.mark.parametrize(
    ("resumes", "native", "crashes"), [(True, "n1", 0), (False, "n1", 1), (True, "", 1)]
)
def test_a_worker_that_stops_politely_is_asked_where_its_conversation_can_go_on(
    stage, resumes, native, crashes
) -> None:
    stage.harnesses.resumes, stage.harnesses.report = resumes, Report(native=native, said="Bye.")
    id = _working(stage)
    stage.dies(stage.alive(id)[0])
    stage.event(stage.alive(id)[0])
    stage.turn()

    asked = "You stopped, and nothing was handed in" in stage.harnesses.jobs[1].prompt
    assert (asked, stage.world.task(id).crash_count) == (not crashes, crashes)
    assert stage.world.task(id).last_words == "Bye."


@pytest.mark.req("R139", "R140")
def test_a_full_context_begins_anew(stage) -> None:
    stage.harnesses.report = Report(native="n1", exhausted=True)
    id = _working(stage)
    stage.dies(stage.alive(id)[0])
    stage.event(stage.alive(id)[0])
    stage.turn()

    assert [job.native for job in stage.harnesses.jobs] == ["", ""]


def _fresh_prompt(stage: Stage, id: TaskId) -> str:
    """What the worker is told that comes after a failed evaluation and can resume nothing."""
    for _ in range(3):  # the worker before it gets time to leave
        stage.turn(HEALTH_CHECK)
    job = stage.harnesses.jobs[-1]
    assert (job.role, job.native) == (Role.WORKER, "")
    assert len(stage.app.store.sessions(id)) > 1
    return job.prompt


def _by_a_worker(stage: Stage, id: TaskId) -> Caller:
    session = stage.app.store.session(stage.alive(id)[0])
    assert session is not None
    return Caller(Actor.WORKER, session)


TOLD = "Previous work summary:\n> DONE: the redirect\n"


@pytest.mark.req("R119", "R142")
def test_a_fresh_agent_is_told_of_work_that_was_handed_on_without_a_summary(stage) -> None:
    stage.gates.results, stage.harnesses.resumes = ["fail"], False
    id = _working(stage)
    _hands_off(stage, id)

    stage.signals.move(id, Move(S.AGENT_REVIEW), _by_a_worker(stage, id), Said(summary=" "))

    prompt = _fresh_prompt(stage, id)
    assert TOLD in prompt
    assert "Files modified so far:\n- a.txt\n" in prompt


@pytest.mark.req("R119", "R142")
def test_a_fresh_agent_is_told_of_the_work_of_one_that_exited_without_a_word(stage) -> None:
    stage.gates.results, stage.harnesses.resumes = ["fail"], False
    id = _working(stage)
    _hands_off(stage, id)
    stage.dies(stage.alive(id)[0])
    stage.event(stage.alive(id)[0])

    prompt = _fresh_prompt(stage, id)
    assert TOLD in prompt
    assert "Files modified so far:\n- a.txt\n" in prompt


@pytest.mark.req("R119", "R142")
def test_a_fresh_agent_is_told_the_files_of_work_that_could_not_be_taken_at_once(stage) -> None:
    stage.gates.results, stage.harnesses.resumes = ["fail"], False
    id = _working(stage)
    _hands_off(stage, id)
    stage.workspaces.not_taken = "the disk is full"
    stage.signals.move(id, Move(S.AGENT_REVIEW), _by_a_worker(stage, id), Said())
    stage.workspaces.not_taken = ""

    prompt = _fresh_prompt(stage, id)
    assert TOLD in prompt
    assert "Files modified so far:\n- a.txt\n" in prompt


@pytest.mark.req("R142")
def test_a_checkpoint_that_says_nothing_hides_nothing_that_was_said_before(stage) -> None:
    id = _working(stage)
    caller = _by_a_worker(stage, id)
    stage.signals.checkpoint(id, caller, Said(type="incremental", summary="half of it"))
    stage.workspaces.not_taken = "the disk is full"

    noted = stage.signals.checkpoint(id, caller, Said(type="incremental"))

    assert (noted.work_summary, noted.files_modified) == ("half of it", ("a.txt",))


def test_a_usage_limit_is_waited_for_and_nobody_polls(stage) -> None:
    until = stage.time.now() + 3600
    stage.harnesses.report = Report(native="n1", limited_until=until)
    id = _working(stage)
    stage.dies(stage.alive(id)[0])
    stage.event(stage.alive(id)[0])
    stage.turn()
    assert stage.alive(id) == []
    assert not stage.loop.is_quiet()

    stage.turn(3500)
    assert stage.alive(id) == []
    stage.turn(101)

    assert len(stage.alive(id)) == 1
    assert stage.world.task(id).crash_count == 0


@pytest.mark.parametrize("dies_at", ["start", "session_started"])
def test_a_start_that_was_cut_off_is_finished_by_the_next_orchestrator(stage, dies_at) -> None:
    id = stage.world.create()
    if dies_at == "start":
        stage.sessions.refuses = "the power went"
    else:
        stage.app.store.commit = _cut_off(stage, "session.started")
    stage.turn()
    assert stage.sessions.runs == []
    tokens = {it.token for it in stage.sessions.noted.values()}

    stage.sessions.refuses = ""
    stage.restart()
    stage.turn()

    assert len(stage.sessions.runs) == 1
    assert {it.token for it in stage.sessions.noted.values()} == tokens
    assert stage.world.types(id).count("session.started") == 1


def test_two_whose_start_was_cut_off_do_not_wait_for_each_others_slot(tmp_path) -> None:
    stage = Stage(tmp_path, TESTS_FIRST.replace("[gates]", "slots = 1\n[gates]"))
    first, second = stage.world.create("one"), stage.world.create("two")
    stage.sessions.refuses = "the power went"
    stage.turn()
    stage.world.move(second, S.WORKING)
    stage.world.begin(second, Role.WORKER)  # at the same moment, so both found the slot free

    stage.sessions.refuses = ""
    stage.restart()
    stage.turn()

    assert sorted(stage.sessions.runs) == sorted([*stage.alive(first), *stage.alive(second)])
    assert len(stage.sessions.runs) == 2
    stage.app.store.close()


def test_a_task_that_moved_on_since_it_was_found_ready_is_left_where_it_is(stage) -> None:
    id = stage.world.create("one")
    found = stage.world.task(id)
    stage.world.move(id, S.CANCELLED)
    stage.world.create("two")
    stage.app.store.ready = lambda *_: (found,)
    stage.turn()

    assert stage.world.task(id).status is S.CANCELLED
    assert stage.reports == []


def test_an_agent_that_is_not_installed_leaves_its_task_pending(stage) -> None:
    stage.harnesses.how = "npm install it"
    id = _working(stage)

    assert stage.world.task(id).status is S.PENDING
    assert "npm install it" in stage.reports[0]

    stage.harnesses.how = None
    stage.turn(60)
    assert stage.world.task(id).status is S.WORKING


def test_what_fails_is_told_once_and_tried_again(stage) -> None:
    stage.workspaces.broken = "the disk is full"
    id = _working(stage)
    stage.turn(20)
    assert [it for it in stage.reports if "the disk is full" in it] == stage.reports[:1]
    assert stage.loop.is_quiet()

    stage.workspaces.broken = ""
    stage.turn(20)

    assert len(stage.alive(id)) == 1
    assert stage.loop.troubles == {}


def test_a_gate_that_could_not_judge_is_a_humans_and_costs_nothing(stage) -> None:
    stage.gates.results = ["memory"]
    id = _working(stage)
    _hands_off(stage, id)
    stage.dies(stage.alive(id)[0])
    stage.event(stage.alive(id)[0])
    stage.turn()

    task = stage.world.task(id)
    assert (task.status, task.cause) == (S.STUCK, Cause.GATE_BROKEN)
    assert (task.iteration, task.failed_attempts) == (1, 0)


@pytest.mark.req("R183", "R184", "R187")
def test_no_sixth_attempt_is_made_without_a_human(tmp_path) -> None:
    stage = Stage(tmp_path, TESTS_FIRST + "[limits]\ncrashes = 9\n")
    id = _working(stage)
    for _ in range(ESCALATION_THRESHOLD):
        [session] = stage.alive(id)
        stage.dies(session, code=1)
        stage.event(session)
        stage.turn(5)

    assert stage.world.task(id).status is S.PAUSED_FOR_INTERVENTION
    stage.turn(HEALTH_CHECK)
    stage.restart()
    stage.turn(HEALTH_CHECK)
    assert len(stage.app.store.sessions(id)) == ESCALATION_THRESHOLD

    stage.app.runner.resume(id, "use the other door")
    stage.turn()
    assert len(stage.alive(id)) == 1
    assert "use the other door" in stage.harnesses.jobs[-1].prompt
    stage.app.store.close()


def test_a_lost_runner_is_a_crash_and_a_machine_that_went_down_is_not(stage) -> None:
    id = _working(stage)
    stage.dies(stage.alive(id)[0], Ending.LOST, None)
    stage.event(stage.alive(id)[0])
    stage.turn()
    assert stage.world.task(id).crash_count == 1

    stage.dies(stage.alive(id)[0], Ending.INTERRUPTED, None)
    stage.event(stage.alive(id)[0])
    stage.turn()

    assert stage.world.task(id).crash_count == 1
    assert len(stage.alive(id)) == 1


def _cut_off(stage: Stage, type: str):
    """The store's commit, which fails where this event would be written, as if killed."""
    commit = stage.app.store.commit

    def dies(decision) -> None:
        if type in {type_of(event) for event in decision.events}:
            raise RuntimeError("killed")
        commit(decision)

    return dies


def test_clones_that_nobody_works_in_are_given_back(stage) -> None:
    stage.gates.results = ["memory"]
    id = _working(stage)
    _hands_off(stage, id)
    stage.dies(stage.alive(id)[0])
    stage.event(stage.alive(id)[0])
    stage.turn()
    stage.turn(700)

    assert any("released" in it for it in stage.reports)
    assert stage.workspaces.set_ups_within == 7
    assert stage.world.task(id).status is S.STUCK


def test_what_is_too_old_goes_in_steps_until_nothing_is_left(stage) -> None:
    steps, rotated = [(100, 2_000_000), (3, 1000)], list[bool]()
    stage.loop.crew.housekeeper = replace(
        stage.loop.crew.housekeeper,
        clean=lambda: steps.pop(0) if steps else (0, 0),
        rotate=lambda: rotated.append(True),
    )

    for _ in range(4):
        stage.turn(10)

    assert [it for it in stage.reports if "too old" in it] == [
        "housekeeping: 100 things were too old, 2.0 MB",
        "housekeeping: 3 things were too old, 0.0 MB",
    ]
    assert rotated


def _judged_without_review(place) -> tuple[Stage, TaskId]:
    config = TESTS_FIRST.partition('[[gates.list]]\nname = "review"')[0]
    stage = Stage(place, config)
    id = _working(stage)
    _hands_off(stage, id)
    stage.dies(stage.alive(id)[0])
    return stage, id


def test_a_branch_in_use_is_left_alone_and_the_task_goes_on(tmp_path) -> None:
    stage, id = _judged_without_review(tmp_path)
    stage.workspaces.in_the_way = "fix-login is checked out in /r"

    stage.turn(HEALTH_CHECK)

    assert stage.world.task(id).status is S.REVIEWING
    assert stage.world.types(id).count("publish.skipped") == 1
    assert not stage.app.store.pending_effects(id, 10)
    assert not stage.loop.troubles


def test_a_branch_that_became_the_base_meanwhile_is_not_published(tmp_path) -> None:
    stage, id = _judged_without_review(tmp_path)
    git(stage.world.root, "branch", "fix-login")
    git(stage.world.root, "update-ref", "refs/remotes/origin/fix-login", "main")
    git(
        stage.world.root,
        "symbolic-ref",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/fix-login",
    )

    stage.turn(HEALTH_CHECK)

    assert stage.world.task(id).status is S.REVIEWING
    assert stage.workspaces.published == []
    assert "publish.skipped" in stage.world.types(id)


def test_a_branch_of_that_name_without_the_change_is_no_landing(tmp_path) -> None:
    stage, id = _judged_without_review(tmp_path)
    git(stage.world.root, "branch", "fix-login")
    stage.turn(HEALTH_CHECK)

    with pytest.raises(TransitionRefused, match="is not in the target branch"):
        stage.world.move(id, S.DONE)


def test_a_branch_of_its_own_is_published_once(tmp_path) -> None:
    stage, id = _judged_without_review(tmp_path)

    stage.turn(HEALTH_CHECK)

    assert stage.workspaces.published == [stage.workspaces.work.commit]
    assert "publish.skipped" not in stage.world.types(id)


# --- what keeps failing -------------------------------------------------------------------------


def test_what_fails_three_times_in_the_same_way_needs_a_human_until_it_succeeds(stage) -> None:
    stage.workspaces.broken = "the disk is full"
    id = _working(stage)
    stage.turn(20)
    assert needs_human(stage.world.task(id)) == ""

    stage.turn(20)
    stage.turn(20)

    assert "the disk is full" in needs_human(stage.world.task(id))
    [need] = stage.app.boards.inbox().needs
    assert (need.task, "the disk is full" in need.ask) == (id, True)
    assert stage.world.types(id).count("task.troubled") == 1
    assert at_rest(
        stage.world.task(id), stage.app.store.pending_effects(id, 9), lands_by_itself=True
    )

    stage.restart()
    stage.workspaces.broken = ""
    stage.turn(20)

    assert stage.world.task(id).troubled == ""
    assert stage.world.types(id).count("task.recovered") == 1
    assert stage.app.boards.inbox().needs == ()


def test_a_task_that_cannot_be_started_needs_a_human_too(stage) -> None:
    stage.harnesses.how = "npm install it"
    id = _working(stage)
    for _ in range(3):
        stage.turn(60)

    [row] = stage.app.boards.board(NEEDED).rows
    assert (row.id, row.status) == (id, S.PENDING)
    assert row.need is not None
    assert "npm install it" in row.need.ask


def test_failures_of_different_kinds_are_not_added_up(stage) -> None:
    id = stage.world.create()
    for why in ("the disk is full", "git is gone", "the disk is full", "git is gone"):
        stage.workspaces.broken = why
        stage.turn(20)

    assert stage.world.task(id).troubled == ""


def test_a_lane_that_has_no_task_is_listed_by_its_own_name(stage) -> None:
    lane = {"train of repo": Trouble(why="the remote is gone", times=3)}

    stage.app.troubles.update(lane)

    seen = stage.app.boards.board(NEEDED)

    assert [(it.kind, it.ask) for it in seen.needs] == [
        (NeedKind.SURROUNDINGS, "train of repo: the remote is gone")
    ]
    told = board.status_text(board.Home(pid=None, board=seen, troubles=lane), 0.0, 0)
    assert "needs you: 1\n  ! train of repo: the remote is gone" in told


UNFIT = Unfit((Finding(Priority.P0_CRITICAL, "git refuses .gitmodules", Location(".gitmodules")),))


@pytest.mark.parametrize("config", [TESTS_FIRST, REVIEW_ONLY], ids=["tests", "review"])
def test_work_that_cannot_be_taken_goes_back_and_at_last_needs_a_human(tmp_path, config) -> None:
    stage = Stage(tmp_path, config)
    stage.workspaces.unfit = UNFIT
    id = _working(stage)
    for number in range(3):
        [session] = stage.alive(id)
        _hands_off(stage, id, f"{HANDOFF} {number}")
        stage.dies(session)
        stage.turn(HEALTH_CHECK)
    task, [need] = stage.world.task(id), stage.app.boards.inbox().needs

    assert (task.status, task.cause) == (S.STUCK, Cause.MAX_ITERATIONS)
    assert need.task == id
    assert "change-check failed" in need.ask
    assert stage.loop.troubles == {}
    assert "git refuses .gitmodules" in stage.harnesses.jobs[-1].prompt
    assert {it.role for it in stage.app.store.sessions(id)} == {Role.WORKER}
    stage.app.store.close()


def test_a_task_whose_agent_is_not_logged_in_does_not_start_and_starts_once_it_is(stage) -> None:
    stage.harnesses.needs = ("KEY",)
    id = stage.world.create()
    stage.turn()
    assert stage.world.task(id).status is S.PENDING
    assert any("scripted is not logged in" in it for it in stage.reports)

    stage.credentials.given["KEY"] = "sk-1"
    stage.turn(60)

    assert stage.world.task(id).status is S.WORKING
    assert len(stage.alive(id)) == 1


def test_a_worker_that_lost_its_login_is_not_started_again_and_nothing_is_counted(stage) -> None:
    id = _working(stage)
    [session] = stage.alive(id)
    stage.harnesses.needs = ("KEY",)
    stage.dies(session, Ending.INTERRUPTED)
    stage.turn(HEALTH_CHECK)
    stage.turn(HEALTH_CHECK)
    stage.turn(HEALTH_CHECK)

    task = stage.world.task(id)
    assert (task.status, task.crash_count, task.failed_attempts) == (S.WORKING, 0, 0)
    assert stage.alive(id) == []
    assert "scripted is not logged in" in needs_human(task)

    stage.credentials.given["KEY"] = "sk-1"
    stage.turn(HEALTH_CHECK)

    assert len(stage.alive(id)) == 1
    assert needs_human(stage.world.task(id)) == ""


def _gone(*_args: object) -> None:
    raise Unavailable("the database was not read", why="it is gone", fix="wait")


def test_while_the_store_is_gone_nothing_that_is_due_keeps_the_loop_awake(stage) -> None:
    stage.workspaces.broken = "the disk is full"
    _working(stage)
    stage.time.at += HEALTH_CHECK  # the lane has rested
    stage.app.store.pulse = _gone

    stage.loop.wait(stage.loop._turned())

    assert stage.watch.waits[-1] >= 1.0


def test_a_limit_until_a_time_of_day_is_looked_at_again_for_the_clock_may_jump(stage) -> None:
    stage.harnesses.report = Report(native="n1", limited_until=stage.time.now() + 86_400)
    id = _working(stage)
    [session] = stage.alive(id)
    stage.dies(session)
    stage.event(session)
    stage.turn()

    [lane] = [it for it in stage.loop.engine.lanes() if id in it.name]

    assert lane.until - lane.since <= RECKON
