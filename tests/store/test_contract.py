"""What a store promises, whichever database is under it."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given
from msgspec.structs import replace

from lockgate.adapters.store import rows
from lockgate.adapters.store.daily import SqlDaily
from lockgate.adapters.store.json_forms import EFFECTS as EFFECTS_READ_BACK
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.core.lifecycle.decision import (
    Decision,
    DiscardTask,
    Effect,
    EndSessions,
    EvaluateGates,
    MirrorTask,
    NotifyHuman,
    PublishChange,
    SpawnAgent,
)
from lockgate.core.model.events import Escalation, SummaryChanged, TaskDeleted
from lockgate.core.model.facts import as_facts, event_hash
from lockgate.core.model.findings import Finding, GateFeedback, Location, Priority
from lockgate.core.model.people import Draft, Person, Right
from lockgate.core.model.results import Broken, Failed, Passed, Waiting
from lockgate.core.model.statistics import Count
from lockgate.core.model.task import (
    Approval,
    Budget,
    Cause,
    Evaluating,
    GateKind,
    GateRef,
    GatesPassed,
    IterationOutcome,
    IterationRecord,
    NeedsFixes,
    Pinned,
    ProjectId,
    Revert,
    Role,
    Seat,
    Session,
    SessionId,
    Size,
    Status,
    Stuck,
    Task,
    TaskId,
    Word,
    Working,
)
from lockgate.core.model.task import Failed as FailedPhase
from lockgate.errors import NoFreeSlot, NoSuchTask, Refused, StaleTask, Unavailable
from lockgate.ports import PendingEffect, Project, Store, TaskFilter, Waits, of_project
from tests.given import PROOF
from tests.store.conftest import Place
from tests.store.samples import (
    EFFECTS,
    PHASES,
    PROJECT,
    a_session,
    a_task,
    effects,
    moved,
    sessions,
    tasks,
)


@pytest.fixture
def place(migrated_place: Place) -> Place:
    return migrated_place


FEEDBACK = GateFeedback(
    gate_name="tests",
    findings=(
        Finding(Priority.P0_CRITICAL, "é – 𝄞 is red", Location("a b.py", 3, None), "mend it"),
        Finding(Priority.P3_SUGGESTION, "'; DROP TABLE tasks; --"),
    ),
    summary="two",
    suggested_action="read them",
)
ONE_OF_EACH_PHASE = (
    Working("a", 1),
    Evaluating("a", 1, 2),
    NeedsFixes("a", 1, FEEDBACK),
    GatesPassed("a", 0.1 + 0.2),
    Stuck("a", 3, FEEDBACK),
    FailedPhase("no\nuse %s %(id)s :id ?"),
)
HISTORY = (
    IterationRecord(
        iteration=1,
        agent_id="a",
        outcome=IterationOutcome.FAILED_WITH_RETRY,
        feedback=FEEDBACK,
    ),
    IterationRecord(iteration=2, agent_id="b", outcome=IterationOutcome.PASSED),
)
PINNED = Pinned(
    base_commit="c",
    config_hash="h",
    gates=(GateRef("g", GateKind.HUMAN), GateRef("f", GateKind.COMMAND, fail_fast=True)),
    respawn=False,
    protect=(".github/**", "é"),
    lands_alone=True,
    budget=Budget(2.5, 2**33, 120),
)
RESULTS = (
    Passed("tests", PROOF, (Finding(Priority.P2_MINOR, "slow"),)),
    Failed("lint", FEEDBACK.findings),
    Waiting("approval – é '", "Approve %s :id it?"),
    Broken("types", "no\nmypy"),
)


def vars_of(task: Task) -> dict[str, object]:
    return {it: getattr(task, it) for it in task.__struct_fields__}


# --- rows ---------------------------------------------------------------------------------------


@given(tasks)
@pytest.mark.unmeasured
def test_a_task_comes_back_from_its_row_as_it_was(task: Task) -> None:
    assert rows.task_from_row(rows.task_to_row(task)) == task


@given(sessions)
def test_a_session_comes_back_from_its_row_as_it_was(session: Session) -> None:
    assert rows.session_from_row(rows.session_to_row(session)) == session


@given(effects)
def test_an_effect_comes_back_from_its_row_as_it_was(effect: Effect) -> None:
    pending = PendingEffect("t:1:0", TaskId("t"), effect)

    assert rows.effect_from_row(rows.effect_to_row(pending)) == pending


def test_a_row_has_a_column_for_every_field() -> None:
    assert set(rows.task_to_row(a_task())) == set(Task.__struct_fields__)
    assert set(rows.session_to_row(a_session(a_task()))) == set(Session.__struct_fields__)


def test_every_effect_can_be_read_back() -> None:
    assert set(EFFECTS_READ_BACK) == {it.__name__ for it in EFFECTS}


def test_every_phase_is_among_the_ones_stored_here() -> None:
    assert {type(it) for it in ONE_OF_EACH_PHASE} == set(PHASES)


# --- a task in the database ---------------------------------------------------------------------


def test_every_field_survives_the_database(store: Store) -> None:
    full = a_task(
        summary="é – 𝄞 % _ ' \" \\ :id %(id)s",
        phase=None,
        created=0.1 + 0.2,
        updated=1e15 + 0.5,
        auto_start=False,
        depends_on=(TaskId("b"), TaskId("a")),
        iteration=1,
        review_round=2,
        crash_count=3,
        failed_attempts=4,
        generation=5,
        since=6,
        dead=True,
        taken_over=True,
        not_before=1e9 + 0.25,
        exhausted=True,
        usd=0.1 + 0.2,
        tokens=2**40,
        seconds=1e6 + 0.5,
        candidate="a" * 40,
        patch="b" * 64,
        protected=(".github/é '.yml", "x\ny"),
        passed=("tests", "é '"),
        entered=1e9 + 0.125,
        waiting="approval",
        asked="may it – é '?",
        approvals=(
            Approval("approval", "b" * 64, "yes – 𝄞 '", "ann – é '", "uid 7"),
            Approval("é", "", ""),
        ),
        seats=(Seat(gate="é '", dimension="style", generation=7, said="{}", lost=True),),
        steps_passed=("red", "é '"),
        step_failures=2,
        escalated="step 'é' – 3",
        troubled="no – é '",
        to_land=True,
        held="not now – é '",
        landed="d" * 40,
        size=Size(1802, 9_000_000, 3, 41, 7),
        cause=Cause.BUDGET,
        directive="two\nlines",
        taken_at=1e9 + 0.75,
        question="red\nor blue – é '?",
        words=(Word(7, "use blue – é '", 1e9 + 0.5), Word(9, "two\nlines", 2.5)),
        last_words="I am done – é '",
        reverts=Revert(
            task=TaskId("t0"), landed="e" * 40, commit="f" * 40, unjudged="main is red – é '"
        ),
        instead_of="claude – é '",
        in_vain="t0 was cancelled – é '",
        host="h1 – é '",
        history=HISTORY,
        spent=frozenset({"b", "a"}),
        pinned=PINNED,
    )

    store.create(Decision(full))

    assert store.load(full.id) == full
    told = {
        name: value for name, value in vars_of(full).items() if value == vars_of(a_task())[name]
    }
    assert set(told) == {"id", "project", "branch", "agent", "rev", "status", "phase", "priority"}


def test_what_changes_with_a_turn_is_changed_in_the_database(store: Store) -> None:
    store.create(Decision(a_task()))
    changed = moved(
        a_task(),
        since=1,
        taken_over=True,
        not_before=2.5,
        exhausted=True,
        usd=1.25,
        tokens=2**33,
        seconds=60.5,
        candidate="b" * 40,
        patch="d" * 64,
        protected=(".lockgate/config.toml",),
        passed=("lint",),
        waiting="approval",
        approvals=(Approval("approval", "c" * 64, "yes"),),
    )

    store.commit(changed)

    assert store.load(TaskId("t1")) == changed.task


def test_what_gates_said_is_kept_as_they_said_it_with_the_turn_that_heard_them(
    store: Store,
) -> None:
    store.create(Decision(a_task()))
    first = replace(moved(a_task(), updated=7.5), results=RESULTS)
    second = replace(moved(first.task, updated=8.5), results=RESULTS[:1])

    store.commit(first)
    store.commit(second)

    found = store.gate_results(TaskId("t1"), 0, 9)
    assert [(it.rev, it.time, it.gate, it.result) for it in found] == [
        (1, 7.5, "tests", "passed"),
        (1, 7.5, "lint", "failed"),
        (1, 7.5, "approval – é '", "waiting"),
        (1, 7.5, "types", "broken"),
        (2, 8.5, "tests", "passed"),
    ]
    assert found[0].data["proof"] == json.loads(json.dumps(as_facts(PROOF)))
    assert found[1].data["findings"] == json.loads(json.dumps(as_facts(RESULTS[1])["findings"]))
    assert found[2].data["prompt"] == "Approve %s :id it?"
    assert found[3].data["why"] == "no\nmypy"
    assert store.gate_results(TaskId("t1"), 1, 9) == found[4:]
    assert store.gate_results(TaskId("t1"), 0, 2) == found[:2]
    assert store.gate_results(TaskId("t2"), 0, 9) == ()


def test_what_gates_said_is_not_kept_where_the_turn_was_overtaken(store: Store) -> None:
    store.create(Decision(a_task()))
    store.commit(moved(a_task()))

    with pytest.raises(StaleTask):
        store.commit(replace(moved(a_task()), results=RESULTS))

    assert store.gate_results(TaskId("t1"), 0, 9) == ()


def test_gates_speak_of_a_task_that_has_the_id_of_a_deleted_one(store: Store) -> None:
    store.create(Decision(a_task()))
    store.commit(replace(moved(a_task()), results=RESULTS))
    store.delete(moved(store.load(TaskId("t1"))))
    store.create(Decision(a_task()))

    store.commit(replace(moved(a_task()), results=(Broken("tests", "no pytest"),)))

    [said] = store.gate_results(TaskId("t1"), 0, 1)
    assert (said.gate, said.data["why"]) == ("tests", "no pytest")


@pytest.mark.parametrize("phase", ONE_OF_EACH_PHASE, ids=lambda it: type(it).__name__)
def test_every_phase_survives_the_database(store: Store, phase: object) -> None:
    store.create(Decision(a_task()))

    store.commit(moved(a_task(), phase=phase))

    assert store.load(TaskId("t1")).phase == phase


@pytest.mark.parametrize("status", Status)
def test_every_status_is_stored_by_its_name(store: Store, place: Place, status: Status) -> None:
    store.create(Decision(a_task(status=status)))

    assert store.load(TaskId("t1")).status is status
    assert [tuple(it) for it in place.execute("SELECT status FROM tasks")] == [(status.name,)]


@pytest.mark.req("R185")
def test_a_pause_is_written_by_a_statement_with_parameters(store: Store, place: Place) -> None:
    hostile = "x', status = 'DONE' WHERE 1 = 1; DROP TABLE tasks; --"
    store.create(Decision(a_task()))

    pause = moved(
        a_task(),
        Escalation(TaskId("t1"), 5),
        status=Status.PAUSED_FOR_INTERVENTION,
        summary=hostile,
    )
    store.commit(pause)

    found = [tuple(it) for it in place.execute("SELECT status, summary FROM tasks")]
    assert found == [("PAUSED_FOR_INTERVENTION", hostile)]
    assert store.events(None, 0, 9)[0].data["state"] == "PAUSED_FOR_INTERVENTION"


@pytest.mark.req("R189")
def test_a_resume_resets_the_counter_and_the_status_or_neither(store: Store) -> None:
    paused = a_task(status=Status.PAUSED_FOR_INTERVENTION, failed_attempts=5)
    store.create(Decision(paused))
    resumed = moved(paused, status=Status.PENDING, failed_attempts=0)

    broken = replace(resumed, session=a_session(a_task("nobody")))  # refused after the UPDATE
    with pytest.raises(Refused):
        store.commit(broken)
    assert store.load(paused.id) == paused

    store.commit(resumed)
    assert store.load(paused.id) == resumed.task


def test_an_unknown_task_is_not_found(store: Store) -> None:
    for id in ("nobody", "", "\0", "\ud800", "'"):
        with pytest.raises(NoSuchTask):
            store.load(TaskId(id))


@pytest.mark.parametrize("text", ["a\0b", "\udc80"])
def test_a_text_that_no_database_keeps_is_refused(store: Store, text: str) -> None:
    with pytest.raises(Refused, match="summary was not stored"):
        store.create(Decision(a_task(summary=text)))

    assert store.named("") == ()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("phase", "'{'"),
        ("phase", "'[]'"),
        ("phase", """'{"is":"dreaming"}'"""),
        ("phase", """'{"is":"working","agent_id":"a"}'"""),
        ("phase", """'{"is":"working","agent_id":"a","iteration":true}'"""),
        ("phase", "'" + "[" * 100_000 + "'"),
        ("depends_on", "'[1]'"),
        ("depends_on", "'{}'"),
        ("spent", "''"),
        ("history", "'[{}]'"),
        ("history", "'{}'"),
        ("pinned", "'{}'"),
        ("cause", "'bad luck'"),
        ("passed", "'{}'"),
        ("passed", "'[1]'"),
    ],
)
def test_a_damaged_row_is_not_read(store: Store, place: Place, column: str, value: str) -> None:
    store.create(Decision(a_task()))
    place.execute(f"UPDATE tasks SET {column} = {value}")  # noqa: S608  the table above

    with pytest.raises(Unavailable, match=r"task 't1'.* was not read: the database is damaged"):
        store.load(TaskId("t1"))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("summary", None),
        ("summary", b"bytes"),
        ("created", "yesterday"),
        ("rev", 1.5),
        ("rev", True),
        ("status", "pending"),
        ("auto_start", 2),
        ("dead", None),
        ("since", None),
        ("taken_over", 2),
        ("exhausted", "yes"),
        ("not_before", None),
        ("usd", "5 USD"),
        ("tokens", 1.5),
        ("seconds", "long"),
        ("candidate", None),
    ],
)
def test_a_value_of_another_type_is_damage(column: str, value: object) -> None:
    row = {**rows.task_to_row(a_task()), column: value}

    with pytest.raises(Unavailable, match="the database is damaged"):
        rows.task_from_row(row)


def test_a_missing_column_is_damage() -> None:
    row = rows.task_to_row(a_task())
    del row["cause"]

    with pytest.raises(Unavailable, match="cause is missing"):
        rows.task_from_row(row)


def test_an_unknown_effect_is_not_read(store: Store, place: Place) -> None:
    store.create(Decision(a_task(), effects=(MirrorTask(),)))
    place.execute("UPDATE outbox SET kind = 'Dream'")

    with pytest.raises(Unavailable, match="there is no effect 'Dream'"):
        store.pending_effects(None, 9)


# --- compare and set ----------------------------------------------------------------------------


def test_of_many_threads_that_commit_the_same_rev_one_wins(store: Store) -> None:
    store.create(Decision(a_task()))
    together = Barrier(8)

    def race(n: int) -> str:
        together.wait()
        try:
            store.commit(moved(a_task(), summary=f"by {n}"))
        except StaleTask:
            return ""
        return f"by {n}"

    with ThreadPoolExecutor(8) as threads:
        winners = [it for it in threads.map(race, range(8)) if it]

    assert winners == [store.load(TaskId("t1")).summary]
    assert len(store.events(None, 0, 99)) == 1


def test_of_many_processes_that_commit_the_same_rev_one_wins(store: Store, place: Place) -> None:
    store.create(Decision(a_task()))
    script = [sys.executable, "-m", "tests.store.racer", place.location]
    racers = [
        subprocess.Popen(
            script,
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]

    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    said = sorted(racer.communicate("go\n", timeout=60)[0] for racer in racers)

    assert said == ["stale\n", "stale\n", "stale\n", "won\n"]
    assert store.load(TaskId("t1")).rev == 1
    assert len(store.events(None, 0, 99)) == 1


def test_a_refused_commit_leaves_nothing(store: Store) -> None:
    store.create(Decision(a_task(rev=3)))
    everything = Decision(
        a_task(rev=3), (SummaryChanged("x"),), (MirrorTask(),), a_session(a_task())
    )

    with pytest.raises(StaleTask):
        store.commit(everything)
    with pytest.raises(StaleTask):
        store.delete(everything)
    with pytest.raises(Refused, match="another task has that id"):
        store.create(everything)
    with pytest.raises(NoSuchTask):
        store.commit(replace(everything, task=a_task("t2", rev=1)))
    with pytest.raises(NoSuchTask):
        store.delete(replace(everything, task=a_task("t2", rev=1)))

    assert store.load(TaskId("t1")) == a_task(rev=3)
    assert store.events(None, 0, 99) == ()
    assert store.pending_effects(None, 99) == ()
    assert store.sessions(TaskId("t1")) == ()
    assert store.first_broken_event() is None


def test_a_task_of_an_unknown_project_is_refused(store: Store) -> None:
    with pytest.raises(Refused):
        store.create(Decision(a_task(project=ProjectId("nowhere")), (SummaryChanged("x"),)))

    assert store.events(None, 0, 99) == ()
    assert store.first_broken_event() is None


# --- the event log ------------------------------------------------------------------------------


def test_events_are_numbered_without_gaps_under_eight_writers(store: Store) -> None:
    def live(n: int) -> None:
        task = a_task(f"t{n}")
        store.create(Decision(task, (SummaryChanged("born"),)))
        for _ in range(9):
            decision = moved(task, SummaryChanged("a"), SummaryChanged("b"))
            with pytest.raises(NoSuchTask):
                store.commit(replace(decision, task=a_task("nobody", rev=1)))
            store.commit(decision)
            task = decision.task

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(live, range(8)))

    found = store.events(None, 0, 999)
    assert [it.seq for it in found] == list(range(1, 8 * 19 + 1))
    assert [it.prev for it in found[1:]] == [event_hash(it) for it in found[:-1]]
    assert store.first_broken_event() is None


def test_the_first_event_follows_zeros_and_has_its_task_s_time(store: Store) -> None:
    store.create(Decision(a_task(updated=7), (SummaryChanged("é"),)))

    (event,) = store.events(None, 0, 9)

    assert (event.seq, event.prev, event.time) == (1, "0" * 64, 7.0)
    assert (event.type, event.data) == ("summary.changed", {"summary": "é"})


def test_events_are_read_on_from_a_number_and_by_task(store: Store) -> None:
    for id in ("t1", "t2", "t1b"):
        store.create(Decision(a_task(id), (SummaryChanged("1"), SummaryChanged("2"))))

    assert [it.seq for it in store.events(None, 1, 3)] == [2, 3, 4]
    assert [it.seq for it in store.events(TaskId("t2"), 0, 9)] == [3, 4]
    assert [it.seq for it in store.events(TaskId("t1"), 1, 9)] == [2]
    assert store.events(TaskId("t2"), 4, 9) == ()


@pytest.mark.parametrize(
    ("tampering", "broken"),
    [
        ('UPDATE events SET data = \'{"summary":"lie"}\' WHERE seq = 3', 3),
        ('UPDATE events SET data = \'{ "summary":"3"}\' WHERE seq = 3', 3),
        ("UPDATE events SET data = 'nothing' WHERE seq = 3", 3),
        ("UPDATE events SET data = '[]' WHERE seq = 5", 5),
        ("UPDATE events SET time = time + 1 WHERE seq = 3", 3),
        ("UPDATE events SET task = 't2' WHERE seq = 1", 1),
        ("UPDATE events SET type = 'task.resumed' WHERE seq = 5", 5),
        ("UPDATE events SET prev = hash WHERE seq = 3", 3),
        ("UPDATE events SET hash = prev WHERE seq = 3", 3),
        ("DELETE FROM events WHERE seq = 1", 1),
        ("DELETE FROM events WHERE seq = 3", 3),
        ("DELETE FROM events WHERE seq = 5", 5),
        ("DELETE FROM events", 1),
        ("UPDATE events SET seq = 6 WHERE seq = 3", 3),
        ("UPDATE events SET seq = CASE seq WHEN 2 THEN 103 ELSE 102 END WHERE seq IN (2, 3)", 2),
        ("INSERT INTO events SELECT 6, 1, task, type, hash, hash, data FROM events LIMIT 1", 6),
        ("UPDATE log_head SET seq = 4", 5),
        ("UPDATE log_head SET seq = 6", 6),
        ("UPDATE log_head SET hash = 'x'", 5),
    ],
)
def test_tampering_with_an_event_is_seen(
    store: Store, place: Place, tampering: str, broken: int
) -> None:
    store.create(Decision(a_task(), tuple(SummaryChanged(str(n)) for n in range(1, 6))))
    assert store.first_broken_event() is None

    place.execute(tampering)

    assert store.first_broken_event() == broken


def test_two_events_that_changed_places_are_seen(store: Store, place: Place) -> None:
    store.create(Decision(a_task(), tuple(SummaryChanged(str(n)) for n in range(1, 6))))

    for step in ("SET seq = 99 WHERE seq = 2", "SET seq = 2 WHERE seq = 3"):
        place.execute(f"UPDATE events {step}")
    place.execute("UPDATE events SET seq = 3 WHERE seq = 99")

    assert store.first_broken_event() == 2


@pytest.mark.unmeasured
def test_a_long_log_is_followed_to_its_end(store: Store, place: Place) -> None:
    store.create(Decision(a_task(), tuple(SummaryChanged(str(n)) for n in range(2_500))))
    assert store.first_broken_event() is None

    place.execute("UPDATE events SET time = 0 WHERE seq = 2400")

    assert store.first_broken_event() == 2400


# --- effects ------------------------------------------------------------------------------------


def test_effects_wait_in_order_until_they_are_done(store: Store) -> None:
    task = a_task(rev=9)
    store.create(Decision(task))
    store.create(Decision(a_task("t0"), effects=(NotifyHuman(Status.STUCK, "é"),)))
    store.commit(replace(moved(task), effects=(MirrorTask(), SpawnAgent(Role.WORKER, 1))))
    store.commit(replace(moved(moved(task).task), effects=(EvaluateGates(2),)))

    keys = ["t0:0:0", "t1:10:0", "t1:10:1", "t1:11:0"]
    assert [it.key for it in store.pending_effects(None, 99)] == keys
    assert [it.key for it in store.pending_effects(None, 2)] == keys[:2]
    assert [it.key for it in store.pending_effects(TaskId("t1"), 99)] == keys[1:]

    store.effects_done(["t1:10:1", "t1:10:0", "t1:10:0", "unknown"])
    store.effects_done([])

    assert store.pending_effects(None, 99) == (
        PendingEffect("t0:0:0", TaskId("t0"), NotifyHuman(Status.STUCK, "é")),
        PendingEffect("t1:11:0", TaskId("t1"), EvaluateGates(2)),
    )


@pytest.mark.parametrize(
    "effect",
    [
        SpawnAgent(Role.WORKER, 3, interactive=True),
        SpawnAgent(Role.WORKER, 3, fresh=True),
        EndSessions(2**33),
        PublishChange(),
    ],
    ids=repr,
)
def test_an_effect_keeps_what_it_says(store: Store, effect: Effect) -> None:
    store.create(Decision(a_task(), effects=(effect,)))

    assert [it.effect for it in store.pending_effects(None, 9)] == [effect]


@pytest.mark.parametrize(
    ("kind", "data", "effect"),
    [
        ("EndSessions", "{}", EndSessions(0)),
        (
            "SpawnAgent",
            '{"fresh":true,"generation":3,"role":"worker"}',
            SpawnAgent(Role.WORKER, 3, fresh=True),
        ),
    ],
)
def test_an_effect_of_an_earlier_version_is_read_with_what_it_lacks(
    store: Store, place: Place, kind: str, data: str, effect: Effect
) -> None:
    store.create(Decision(a_task(), effects=(MirrorTask(),)))
    place.execute(f"UPDATE outbox SET kind = '{kind}', data = '{data}'")  # noqa: S608  ours

    assert [it.effect for it in store.pending_effects(None, 9)] == [effect]


def test_effects_are_there_after_the_store_is_opened_again(store: Store, place: Place) -> None:
    store.create(Decision(a_task(), effects=(SpawnAgent(Role.REVIEWER, 3, fresh=True),)))
    store.close()

    again = place.open()
    (pending,) = again.pending_effects(None, 9)
    again.close()

    assert pending.effect == SpawnAgent(Role.REVIEWER, 3, fresh=True)


# --- the list of tasks --------------------------------------------------------------------------


@pytest.fixture
def listed(store: Store) -> list[Task]:
    """Twelve tasks of two projects, newest first; three at a time are of one moment."""
    store.add_project(Project(id=ProjectId("p2"), name="two", common_dir="/2", root="/2"))
    statuses = list(Status)
    made = [
        a_task(
            f"t{n:02}",
            created=float(n // 3),
            project=ProjectId("p2") if n % 4 == 0 else PROJECT.id,
            status=statuses[n % 3],
        )
        for n in range(12)
    ]
    for task in made:
        store.create(Decision(task))
    return made[::-1]


FILTERS = [
    TaskFilter(),
    of_project(PROJECT.id),
    of_project(None, {Status.PENDING}),
    of_project(None, {Status.PENDING, Status.WORKING, Status.DONE}),
    of_project(ProjectId("p2"), {Status.PENDING}),
    of_project(PROJECT.id, Status),
    of_project(ProjectId("nowhere")),
]


@pytest.mark.parametrize("limit", [1, 2, 5, 12, 99])
@pytest.mark.parametrize("which", FILTERS, ids=range(len(FILTERS)))
@pytest.mark.unmeasured
def test_pages_show_each_task_once_and_the_newest_first(
    store: Store, listed: list[Task], which: TaskFilter, limit: int
) -> None:
    page = store.page(which, None, limit)
    shown = list(page.tasks)
    while page.after is not None:
        page = store.page(which, page.after, limit)
        assert 0 < len(page.tasks) <= limit
        shown += page.tasks

    assert shown == [
        it
        for it in listed
        if (not which.projects or it.project in which.projects)
        and (not which.statuses or it.status in which.statuses)
    ]


def test_a_page_does_not_shift_when_a_task_is_added_or_moves(
    store: Store, listed: list[Task]
) -> None:
    first = store.page(TaskFilter(), None, 4)

    store.create(Decision(a_task("t99", created=99.0)))
    store.commit(moved(listed[0], updated=100.0))
    second = store.page(TaskFilter(), first.after, 4)

    assert list(second.tasks) == listed[4:8]


def test_a_page_after_a_task_that_is_gone_is_refused(store: Store, listed: list[Task]) -> None:
    with pytest.raises(NoSuchTask):
        store.page(TaskFilter(), TaskId("gone"), 4)


def test_a_branch_finds_every_task_of_its_project_that_has_it_and_no_other(
    store: Store, listed: list[Task]
) -> None:
    store.create(Decision(a_task("t98", created=98.0, branch="other")))

    assert list(store.on_branch(PROJECT.id, "do-it")) == [
        it for it in reversed(listed) if it.project == PROJECT.id
    ]
    assert [it.id for it in store.on_branch(PROJECT.id, "other")] == ["t98"]
    assert store.on_branch(PROJECT.id, "do-it\0") == ()


def test_what_keeps_failing_is_found_in_every_status_and_nothing_else(
    store: Store, listed: list[Task]
) -> None:
    marked = [a_task(f"s-{it}", status=it, troubled="full disk") for it in Status]
    for task in marked:
        store.create(Decision(task))
    store.create(Decision(a_task("s-none", escalated="its steps")))

    assert {it.id for it in store.troubled()} == {it.id for it in marked}


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        ("fix", ["fix"]),
        ("fix-", ["fix-1", "fix-2", "fix-3"]),
        ("fix-1", ["fix-1"]),
        ("fi", ["fix", "fix-1", "fix-2"]),
        ("o", ["other"]),
        ("", ["fix", "fix-1", "fix-2"]),
        ("é", ["é1"]),
        ("z", []),
        ("FIX", []),
        ("f_x", []),
        ("%", []),
        ("*", []),
        ("[f]", []),
        ("fix'", []),
        ("\\", []),
        ("fix\0", []),
        ("\ud800", []),
        ("\U0010ffff", []),
        ("𝄞", []),
    ],
)
@pytest.mark.unmeasured
def test_a_task_is_named_by_the_beginning_of_its_id(
    store: Store, prefix: str, found: list[str]
) -> None:
    for id in ("other", "fix-3", "fix-2", "fix-1", "fix", "fix-4", "é1"):
        store.create(Decision(a_task(id)))

    assert list(store.named(prefix)) == found


# --- deleting -----------------------------------------------------------------------------------


def test_a_deleted_task_leaves_its_events_and_its_last_effects(store: Store) -> None:
    task, other = a_task(), a_task("t2")
    store.create(Decision(task, (SummaryChanged("x"),), (MirrorTask(),), a_session(task)))
    store.create(Decision(other, (), (MirrorTask(),)))

    store.delete(Decision(replace(task, rev=1), (TaskDeleted("row"),), (DiscardTask(),)))

    with pytest.raises(NoSuchTask):
        store.load(task.id)
    assert [it.type for it in store.events(task.id, 0, 9)] == ["summary.changed", "task.deleted"]
    assert [it.key for it in store.pending_effects(None, 9)] == ["t2:0:0", "t1:1:0"]
    assert store.session(SessionId("s1")) is None
    assert store.first_broken_event() is None


def test_an_id_can_be_used_again_and_its_effects_are_new(store: Store) -> None:
    begin = Decision(a_task(), (), (MirrorTask(),))
    store.create(begin)
    store.effects_done(["t1:0:0"])
    store.delete(moved(a_task()))

    store.create(begin)

    assert [it.key for it in store.pending_effects(None, 9)] == ["t1:0:0"]


# --- sessions and projects ----------------------------------------------------------------------


def test_a_session_is_found_by_id_by_token_and_by_task(store: Store) -> None:
    task = a_task()
    first, second = a_session(task), a_session(task, "s2", started=4.0, directory="/w")
    store.create(Decision(task, session=second))
    store.commit(replace(moved(task), session=first))

    assert store.session(first.id) == first
    assert store.session_by_token("hash of s2") == second
    assert store.sessions(task.id) == (first, second)
    assert store.session(SessionId("s3")) is None
    assert store.session_by_token("") is None
    assert store.sessions(TaskId("t2")) == ()


def test_a_session_that_ends_is_the_same_session(store: Store) -> None:
    task = a_task()
    session = a_session(task)
    store.create(Decision(task, session=session))

    ended = replace(session, ended=9.5, directory="/w")
    store.commit(replace(moved(task), session=ended))

    assert store.sessions(task.id) == (ended,)


def test_every_field_of_a_session_survives_the_database(store: Store) -> None:
    task = a_task()
    begun = a_session(
        task,
        role=Role.REVIEWER,
        round=2,
        generation=2**31 - 1,
        directory="/w",
        agent="claude",
        native="é-1",
        interactive=True,
        usd=0.1 + 0.2,
        tokens=2**40,
        login="0f – é '",
    )
    store.create(Decision(task, session=begun))
    assert store.session(begun.id) == begun

    ended = replace(begun, ended=9.5, native="é-2", usd=7.5, tokens=2**41, interactive=False)
    ended = replace(ended, limited_until=1e9 + 0.5)
    store.commit(replace(moved(task), session=ended))

    assert store.session(begun.id) == ended


def test_the_sessions_that_have_not_ended_are_found_whatever_their_task(store: Store) -> None:
    assert store.sessions_alive() == ()
    for id in ("t1", "t2"):
        store.create(Decision(a_task(id)))
    first, second = a_session(a_task(), "s2"), a_session(a_task("t2"), "s1", started=9.0)
    gone = a_session(a_task("t2"), "s0", ended=0.0)
    for rev, session in enumerate((first, gone, second)):
        task = a_task(session.task, rev=0 if rev < 2 else 1)
        store.commit(replace(moved(task), session=session))

    assert store.sessions_alive() == (second, first)
    assert store.ids_alive() == (second.id, first.id)

    store.commit(replace(moved(a_task(rev=1)), session=replace(first, ended=10.0)))
    assert store.sessions_alive() == (second,)
    store.delete(moved(a_task("t2", rev=2)))
    assert store.sessions_alive() == ()


def test_of_many_that_begin_at_the_same_moment_only_as_many_do_as_there_are_slots(
    place: Place, store: Store
) -> None:
    names = [f"t{n}" for n in range(8)]
    store.create(*(Decision(a_task(it)) for it in names))
    ready = Barrier(len(names))

    def begin(name: str) -> bool:
        task, mine = a_task(name), place.open()
        ready.wait()
        try:
            mine.commit(replace(moved(task), session=a_session(task, name), slots=3))
        except NoFreeSlot:
            return False
        finally:
            mine.close()
        return True

    with ThreadPoolExecutor(len(names)) as pool:
        began = list(pool.map(begin, names))

    assert began.count(True) == len(store.sessions_alive()) == 3
    left = [it for it, did in zip(names, began, strict=True) if not did]
    assert all(store.load(TaskId(it)).rev == a_task().rev for it in left)


def test_what_its_own_task_and_other_projects_have_at_work_takes_no_slot(store: Store) -> None:
    other = replace(PROJECT, id=ProjectId("p2"), common_dir="/elsewhere/.git")
    store.add_project(other)
    store.create(Decision(a_task(), session=a_session(a_task(), "s1")))
    theirs = replace(a_task("t2"), project=other.id)
    store.create(Decision(theirs, session=a_session(theirs, "s2")))

    store.commit(replace(moved(a_task()), session=a_session(a_task(), "s3"), slots=1))

    assert len(store.sessions_alive()) == 3


def test_the_sessions_whose_limit_is_not_over_are_found_whatever_their_task(store: Store) -> None:
    for id in ("t1", "t2"):
        store.create(Decision(a_task(id)))
    late = a_session(a_task(), "s2", ended=1.0, limited_until=90.5)
    soon = a_session(a_task("t2"), "s1", ended=1.0, limited_until=20.0)
    for session in (late, soon):
        store.commit(replace(moved(a_task(session.task)), session=session))
    store.commit(replace(moved(a_task(rev=1)), session=a_session(a_task(), "s3")))

    assert store.sessions_limited(0.0) == (soon, late)
    assert store.sessions_limited(20.0) == (late,)
    assert store.sessions_limited(90.5) == ()


def test_a_token_belongs_to_one_session(store: Store) -> None:
    task = a_task()
    store.create(Decision(task, session=a_session(task)))

    with pytest.raises(Refused):
        store.commit(
            replace(moved(task), session=a_session(task, "s2", token_hash="hash of s1"))  # noqa: S106
        )

    assert store.load(task.id) == task


def test_a_project_is_known_by_its_common_directory(store: Store) -> None:
    again = replace(PROJECT, id=ProjectId("p9"), name="again")

    assert store.add_project(again) == PROJECT
    assert store.project(PROJECT.id) == PROJECT
    with pytest.raises(Refused, match="'p9' was not found"):
        store.project(again.id)
    with pytest.raises(Refused):
        store.add_project(replace(PROJECT, common_dir="/elsewhere"))


# --- bodies -------------------------------------------------------------------------------------


def test_the_text_of_a_decision_is_kept_with_it_and_every_other_before(store: Store) -> None:
    task = a_task()
    store.create(Decision(task, body="one\n"))
    store.commit(replace(moved(task), body="two\n"))

    assert store.body(task.id) == "two\n"
    store.commit(moved(store.load(task.id)))
    assert store.body(task.id) == "two\n"


def test_the_text_of_a_refused_decision_is_not_kept(store: Store) -> None:
    task = a_task()
    store.create(Decision(task, body="one\n"))
    store.commit(moved(task))

    with pytest.raises(StaleTask):
        store.commit(replace(moved(task), body="late\n"))

    assert store.body(task.id) == "one\n"


def test_a_task_without_a_text_has_none(store: Store) -> None:
    assert store.body(TaskId("nobody")) is None


# --- what needs a human, what changed last, people ----------------------------------------------


NEEDY: list[dict[str, object]] = [
    {"status": Status.CLARIFICATION},
    {"status": Status.REVIEWING},
    {"status": Status.STUCK},
    {"status": Status.PAUSED_FOR_INTERVENTION},
    {"status": Status.WORKING, "dead": True},
    {"status": Status.WORKING, "escalated": "x"},
    {"status": Status.AGENT_REVIEW, "waiting": "x"},
    {"status": Status.WORKING, "taken_over": True},
    {"status": Status.DONE, "troubled": "x"},
]
QUIET: list[dict[str, object]] = [
    {"status": Status.PENDING},
    {"status": Status.WORKING},
    {"status": Status.AGENT_REVIEW},
    {"status": Status.DONE, "dead": True, "waiting": "x", "escalated": "x", "taken_over": True},
    {"status": Status.CANCELLED, "waiting": "x"},
]


def test_the_tasks_that_may_need_a_human_are_found_by_their_rows(store: Store) -> None:
    needy = [a_task(f"n{n}", **it) for n, it in enumerate(NEEDY)]
    quiet = [a_task(f"q{n}", **it) for n, it in enumerate(QUIET)]
    for task in (*needy, *quiet):
        store.create(Decision(task))

    assert {it.id for it in store.needs()} == {it.id for it in needy}
    assert {it.id for it in store.needs([PROJECT.id])} == {it.id for it in needy}
    assert store.needs([ProjectId("nowhere")]) == ()


@pytest.mark.parametrize("limit", [1, 2, 5, 12, 99])
@pytest.mark.parametrize("which", FILTERS, ids=range(len(FILTERS)))
@pytest.mark.unmeasured
def test_what_lives_comes_first_by_its_last_change_and_each_task_once(
    store: Store, listed: list[Task], which: TaskFilter, limit: int
) -> None:
    seen = store.recent(which, None, limit)
    shown = list(seen.tasks)
    while seen.after is not None:
        seen = store.recent(which, seen.after, limit)
        shown += seen.tasks

    ended = [it.status in {Status.DONE, Status.CANCELLED} for it in shown]
    assert ended == sorted(ended)
    assert sorted(it.id for it in shown) == sorted(it.id for it in listed if which.has(it))


@pytest.mark.parametrize(
    ("which", "found"),
    [
        (TaskFilter(text="T0"), 10),
        (TaskFilter(text="DO IT"), 12),
        (TaskFilter(text="%"), 0),
        (TaskFilter(text="t_1"), 0),
        (TaskFilter(agent="claude"), 12),
        (TaskFilter(agent="codex"), 0),
        (TaskFilter(frozenset({PROJECT.id, ProjectId("p2")})), 12),
        (TaskFilter(needs=True), 4),
    ],
)
def test_tasks_are_found_by_text_by_agent_and_in_several_projects(
    store: Store, listed: list[Task], which: TaskFilter, found: int
) -> None:
    assert len(store.recent(which, None, 99).tasks) == found
    assert len(store.page(which, None, 99).tasks) == found


def test_who_waits_for_whom_is_told_of_those_that_have_not_ended(store: Store) -> None:
    first = a_task("a", status=Status.CANCELLED)
    waits = a_task("b", depends_on=(first.id,))
    ended = a_task("c", depends_on=(first.id,), status=Status.DONE)
    for task in (first, waits, ended):
        store.create(Decision(task))

    assert store.waits() == (Waits(waits.id, Status.PENDING, (first.id,)),)
    assert store.statuses([first.id, TaskId("gone")]) == {first.id: Status.CANCELLED}
    assert store.counts([PROJECT.id]) == store.counts()


def test_tasks_are_counted_as_they_come_move_and_go(store: Store) -> None:
    for n in range(3):
        store.create(Decision(a_task(f"t{n}")))
    moving = moved(a_task("t0"), status=Status.WORKING)
    store.commit(moving)
    store.commit(moved(moving.task, updated=9.0))
    store.delete(moved(a_task("t1")))

    counted = {it: n for it, n in store.counts().items() if n}

    assert counted == {Status.WORKING: 1, Status.PENDING: 1}
    assert {it: n for it, n in store.counts([PROJECT.id]).items() if n} == counted
    assert not any(store.counts([ProjectId("nowhere")]).values())


def test_people_are_kept_by_name_and_a_need_is_seen_by_each_on_their_own(store: Store) -> None:
    ann = Person(name="ann", may=Right.LAND, uid=7, added=1.5, added_by="root – é '")
    store.put_person(ann)
    store.put_person(Person(name="bob", may=Right.LOOK))
    store.put_person(replace(ann, may=Right.ADMIN))
    store.mark_seen("ann", "t:1:stuck", 0.0)
    store.mark_seen("ann", "t:1:stuck", 12.5)
    store.mark_seen("bob", "t:1:stuck", 0.0)
    store.mark_seen("bob", "t:1:stuck", None)

    assert [(it.name, it.may, it.uid) for it in store.people()] == [
        ("ann", Right.ADMIN, 7),
        ("bob", Right.LOOK, None),
    ]
    assert (store.seen("ann"), store.seen("bob")) == ({"t:1:stuck": 12.5}, {})
    assert (store.remove_person("ann"), store.remove_person("ann")) == (True, False)


def test_a_draft_is_kept_as_it_was_written_and_goes_with_its_task(store: Store) -> None:
    store.create(Decision(a_task()))
    draft = Draft(
        id="d1",
        task=TaskId("t1"),
        patch="p",
        person="ann",
        file="é '.py",
        side="old",
        line=3,
        quote="x = '1'",
        text="two\nlines",
        priority="P0",
        time=1.5,
    )
    store.put_draft(draft)
    store.put_draft(replace(draft, id="d2", person="bob"))

    assert store.drafts(TaskId("t1"), "ann") == (draft,)
    store.drop_draft("d1")
    assert store.drafts(TaskId("t1"), "ann") == ()


def test_the_counts_of_days_are_added_once_and_can_be_made_again(store: SqlStore) -> None:
    daily = SqlDaily(store.database)
    count = Count(20000, "p1", "usd", "é '/worker", 0, 2, 0.5)

    assert daily.add(0, 5, [count, replace(count, day=19000)])
    assert not daily.add(0, 5, [count])
    assert daily.add(5, 9, [count])

    assert daily.head() == 9
    assert daily.since(20000, "") == (replace(count, n=4, amount=1.0),)
    assert daily.since(20000, "p2") == ()
    daily.forget()
    assert (daily.head(), daily.since(0, "")) == (0, ())
