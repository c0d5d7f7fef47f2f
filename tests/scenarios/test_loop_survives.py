"""The loop goes on: behind long gates, without its store, whatever the clock of the day says."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lockgate.adapters.store.sql_store import SqlStore
from lockgate.core.jobs import LIMITS, CarryOut, Evaluate, Job, Kind
from lockgate.core.model.gates import CommandGate
from lockgate.core.model.task import SessionId, Status, TaskId
from lockgate.errors import Unavailable
from lockgate.ports import Attempt, GateRun
from lockgate.ports.engine import State
from lockgate.services.orchestrator.loop import HEALTH_CHECK, MINE
from tests.given import HANDOFF
from tests.scenarios.stage import FakeGates, Stage
from tests.scenarios.test_surroundings import CONFIG, hands_in
from tests.scenarios.train.fake_yard import Content, Railway, opened

S = Status
DAY = 86400.0
PATIENCE = 60.0


@pytest.fixture
def stage(tmp_path) -> Iterator[Stage]:
    made = Stage(tmp_path, CONFIG)
    yield made
    made.app.store.close()


@pytest.fixture
def auto(tmp_path) -> Iterator[Railway]:
    yield from opened(tmp_path)


# --- long gates ---------------------------------------------------------------------------------


class LongGates(FakeGates):
    """Each runs until the test lets all of them end."""

    def __init__(self) -> None:
        super().__init__()
        self.running, self.done = 0, threading.Event()
        self.changed = threading.Condition()

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:
        with self.changed:
            self.running += 1
            self.changed.notify_all()
        assert self.done.wait(PATIENCE)
        return super().attempt(gate, run, cancelled)


@pytest.mark.unmeasured
def test_agents_start_and_ends_are_recorded_while_twenty_long_gates_run(tmp_path) -> None:
    gates = LongGates()
    with ThreadPoolExecutor(100) as pool:
        stage = Stage(tmp_path, CONFIG.replace("[gates]", "slots = 99\n[gates]"))
        stage.gates, stage.pool = gates, pool
        stage.restart()
        ids = [stage.world.create(f"b{number}") for number in range(20)]
        eventually(stage, lambda: all(stage.alive(id) for id in ids))
        all_hand_in(stage, ids)
        stage.loop.turn()
        with gates.changed:
            assert gates.changed.wait_for(lambda: gates.running >= 16, PATIENCE)

        late = stage.world.create("late")
        eventually(stage, lambda: bool(stage.alive(late)))
        [session] = stage.alive(late)
        stage.dies(session, code=1)
        stage.event(session)

        assert has_ended(stage, session)
        gates.done.set()
        eventually(stage, lambda: all(stage.world.task(id).status is S.REVIEWING for id in ids))
        stage.loop.stop()
    stage.app.store.close()


@pytest.mark.unmeasured
def test_a_change_is_tested_and_lands_while_twenty_long_gates_run(tmp_path) -> None:
    railway, done = Railway(tmp_path, slots=99), threading.Event()
    lands = railway.ready("lands")
    assert railway.task(lands).status is S.REVIEWING
    railway.yard.stranger_pushes("another")  # so that its tree is another one, and tested again

    def verdict(content: Content) -> str:
        assert "lands" in content or done.wait(PATIENCE)
        return "pass"

    with ThreadPoolExecutor(100) as pool:
        railway.gates.verdict, railway.stage.pool = verdict, pool
        railway.restart()
        stage = railway.stage
        ids = [stage.world.create(f"b{number}") for number in range(20)]
        eventually(stage, lambda: all(stage.alive(id) for id in ids))
        all_hand_in(stage, ids)
        eventually(stage, lambda: judging(stage) >= LIMITS[Kind.JUDGE].of_project)

        railway.opens()
        eventually(stage, lambda: railway.task(lands).status is S.DONE)

        assert railway.gates.tested[-1] == {"lands", "another"}
        assert railway.contents()[-1] == {"lands", "another"}
        assert not {S.REVIEWING, S.DONE} & set(railway.statuses(*ids))
        done.set()
        eventually(stage, lambda: railway.statuses(*ids) == [S.DONE] * 20)
        stage.loop.stop()
    railway.close()


def all_hand_in(stage: Stage, ids: Sequence[TaskId]) -> None:
    for id in ids:
        (stage.workspaces.place(id) / "TASK.md").write_text(HANDOFF)
        [session] = stage.alive(id)
        stage.dies(session)
        stage.event(session)


def judging(stage: Stage) -> int:
    lanes = stage.loop.engine.lanes()
    return sum(isinstance(it.job, Evaluate) and it.state is State.RUNNING for it in lanes)


def has_ended(stage: Stage, session: SessionId) -> bool:
    found = stage.app.store.session(session)
    return found is not None and found.ended is not None


def eventually(stage: Stage, true: Callable[[], bool]) -> None:
    for _ in range(round(PATIENCE / 0.05)):
        stage.loop.turn()
        if true():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it did not happen")


# --- the store ----------------------------------------------------------------------------------


def test_a_store_that_is_gone_is_waited_for_and_told_once_each_way(stage, monkeypatch) -> None:
    gone, turns, pulse = [True], [0], SqlStore.pulse

    def answers(store: SqlStore) -> int:
        turns[0] += 1
        if turns[0] == 5:
            gone[0] = False
        if turns[0] == 8:
            stage.loop.stop()
        if gone[0]:
            raise Unavailable("the database was not read", why="it restarts", fix="wait")
        return pulse(store)

    monkeypatch.setattr(type(stage.app.store), "pulse", answers)
    id = stage.world.create()

    stage.loop.run()

    assert len([it for it in stage.reports if "it restarts" in it]) == 1
    assert len([it for it in stage.reports if "goes on" in it]) == 1
    assert stage.alive(id)
    assert MINE not in stage.loop.troubles
    assert stage.watch.waits[:4] == sorted(stage.watch.waits[:4])  # ever longer


def test_what_was_read_and_could_not_be_put_is_put_after_the_store_is_back(
    stage, monkeypatch
) -> None:
    ids = [stage.world.create(name) for name in ("a", "b", "c")]
    engine = stage.loop.engine
    put: Callable[[Job], bool] = engine.put
    puts = [0]

    def fails_at_the_second(job: Job) -> bool:
        if isinstance(job, CarryOut):
            puts[0] += 1
            if puts[0] == 2:
                stage.loop.stop()
                raise Unavailable("the database was not changed", why="it restarts", fix="wait")
        return put(job)

    monkeypatch.setattr(engine, "put", fails_at_the_second)
    stage.loop.run()
    assert not all(stage.alive(id) for id in ids)

    stage.turn()

    assert all(stage.alive(id) for id in ids)


def test_a_bug_in_a_turn_does_not_end_the_orchestrator(stage, monkeypatch) -> None:
    broken = [True]
    ready = type(stage.app.store).projects_ready

    def fails_once(store: object) -> object:
        if broken.pop() if broken else False:
            raise RuntimeError("a bug")
        stage.loop.stop()
        return ready(store)

    monkeypatch.setattr(type(stage.app.store), "projects_ready", fails_once)

    stage.loop.run()

    assert any("a bug in Lockgate: RuntimeError('a bug')" in it for it in stage.reports)
    assert any("goes on" in it for it in stage.reports)


def test_the_end_of_a_session_that_the_store_did_not_take_is_recorded_later(
    stage, monkeypatch
) -> None:
    id = stage.world.create()
    stage.turn()
    [session] = stage.alive(id)
    stage.dies(session, code=1)
    find = type(stage.app.store).session

    def gone(store: object, id: object) -> object:
        raise Unavailable("the database was not read", why="it restarts", fix="wait")

    monkeypatch.setattr(type(stage.app.store), "session", gone)
    stage.watch.ready.append(session)
    stage.loop.wait(0)
    monkeypatch.setattr(type(stage.app.store), "session", find)

    stage.turn(20)

    assert has_ended(stage, session)


def test_a_database_that_was_replaced_ends_the_orchestrator_with_words(stage) -> None:
    stage.turn()
    file = stage.world.home / "lockgate.db"
    copy = Path(f"{file}.restored")
    copy.write_bytes(file.read_bytes())
    copy.replace(file)

    stage.loop.run()

    [told] = [it for it in stage.reports if "replaced by another copy" in it]
    assert "lockgate up" in told


# --- the clock of the day -----------------------------------------------------------------------


@pytest.mark.parametrize("jump", [-DAY, -3600.0, 3600.0, DAY, -1.8e9])
@pytest.mark.unmeasured
def test_a_jump_of_the_clock_delays_no_landing(auto, jump) -> None:
    first = auto.ready("a")
    auto.opens()
    assert auto.task(first).status is S.DONE

    auto.stage.time.set_by = jump
    second = auto.ready("b")
    auto.turn(HEALTH_CHECK + 1)

    assert auto.task(second).status is S.DONE


@pytest.mark.parametrize("jump", [-DAY, DAY])
def test_a_jump_of_the_clock_delays_no_agent_and_no_look_at_those_that_live(stage, jump) -> None:
    first = stage.world.create("a")
    stage.turn()
    stage.time.set_by = jump
    [session] = stage.alive(first)
    stage.dies(session, code=1)  # no event tells of it: the health check finds it

    stage.turn(HEALTH_CHECK + 1)

    assert has_ended(stage, session)
    assert len(stage.alive(first)) == 1  # its next agent
    second: TaskId = stage.world.create("b")
    stage.turn(1)
    assert stage.alive(second)


def test_what_failed_is_tried_again_though_the_clock_was_set_back(stage) -> None:
    stage.workspaces.not_checked_out = ["git was killed"]
    id = stage.world.create()
    stage.turn()
    stage.time.set_by = -DAY
    hands_in(stage, id)
    assert stage.world.task(id).status is S.AGENT_REVIEW

    stage.turn(20)

    assert stage.world.task(id).status is S.REVIEWING
