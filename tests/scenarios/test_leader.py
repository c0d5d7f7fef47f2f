"""What the leader of several hosts does with jobs that wait, and a host with gates not for it."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.adapters.store.hosts import SqlHosts
from lockgate.core.fleet import LaneRow
from lockgate.core.hosts import SILENT_AFTER, Host
from lockgate.core.jobs import Attend, CarryOut, Evaluate, HostLost, Job, TestTree, lane_of
from lockgate.core.lifecycle.decision import EvaluateGates
from lockgate.core.lifecycle.needs import failed
from lockgate.core.lifecycle.records import placed
from lockgate.core.model.limits import SAME_FAILURES
from lockgate.core.model.task import ProjectId, SessionId, Status, Task, TaskId
from lockgate.core.train.model import Built, Commit, Tree
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Project, Store
from lockgate.ports.engine import Lane, State
from lockgate.services.agents.spawner import GOODBYE
from lockgate.services.orchestrator.crew import NoFleet
from lockgate.services.orchestrator.hosts import HostWork, Placing
from lockgate.services.orchestrator.leader import AGAIN, Planner
from lockgate.services.orchestrator.loop import MINE
from lockgate.services.task.sessions import Attendance
from tests.given import HANDOFF
from tests.scenarios.stage import Stage
from tests.scenarios.test_loop import TESTS_FIRST
from tests.scenarios.world import git

CLAIM = "of h1"


class Waiting(Struct):
    """An engine whose jobs nobody claims."""

    known: list[LaneRow] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    placed: list[str] = field(default_factory=list)

    def put(self, job: Job) -> bool:
        self.jobs.append(job)
        return True

    def lanes(self) -> tuple[Lane, ...]:
        return tuple(
            Lane(name=lane_of(it), job=it, state=State.WAITING, since=0.0) for it in self.jobs
        )

    def unclaimed(self) -> tuple[LaneRow, ...]:
        return tuple(it for it in self.known if not it.token)

    def place_again(self, rows: Iterable[LaneRow]) -> tuple[LaneRow, ...]:
        self.placed += [it.lane for it in rows]
        return tuple(rows)

    def put_again(self, rows: Iterable[LaneRow]) -> int:
        self.again += [it.lane for it in rows]
        return 0

    def put_all_again(self) -> int:
        return self.put_again(self.known)

    def rows(self) -> tuple[LaneRow, ...]:
        return tuple(self.known)


class Lacks(NoFleet, frozen=True):
    """A host that has no label."""

    def only_takes(self, job: Evaluate | TestTree) -> bool:
        return True


def waits(job: Job, needs: str) -> LaneRow:
    return LaneRow(
        lane=lane_of(job),
        job=job,
        needs=needs,
        epoch=0,
        token="",
        host="",
        asked=1.0,
        since=0.0,
        until=0.0,
        why="",
    )


@pytest.fixture
def stage(tmp_path) -> Iterator[Stage]:
    made = Stage(tmp_path, TESTS_FIRST)
    yield made
    made.app.store.close()


def judged(stage: Stage) -> tuple[TaskId, Evaluate]:
    """A task whose agent has ended with its work, and the job of judging it."""
    id = stage.world.create()
    stage.turn()
    (stage.workspaces.place(id) / "TASK.md").write_text(HANDOFF)
    [session] = stage.alive(id)
    stage.dies(session)
    stage.loop.look_after([session])
    project = stage.world.task(id).project
    [effect] = [
        it for it in stage.app.store.pending_effects(id, 10) if isinstance(it.effect, EvaluateGates)
    ]
    return id, Evaluate(id, project, effect.key)


def test_a_job_of_a_host_that_is_gone_and_that_no_other_can_do_is_shown(stage) -> None:
    crew, engine, hosts = stage.loop.crew, Waiting(), SqlHosts(stage.app.store.database)
    now = stage.time.now()
    for host in (Host(name="h1", labels=("gpu",), seen=now), Host(name="h2", seen=now + 60)):
        assert hosts.put(host, None)
    id, job = judged(stage)
    row = replace(waits(job, "gpu"), token=CLAIM, host="h1")
    engine.known = [row, replace(row, lane="judge other", needs="any")]
    planner = Planner(
        store=stage.app.store, crew=crew, engine=engine, hosts=hosts, clock=stage.time
    )

    planner.turned()
    assert not crew.troubles
    stage.time.at += SILENT_AFTER + 1
    planner.turned()

    [trouble] = crew.troubles.values()
    assert trouble.why == "waits: host h1, which had it, is silent"
    assert stage.world.task(id).status is Status.AGENT_REVIEW


def test_after_a_turn_that_failed_all_jobs_are_put_again_once(stage) -> None:
    """Also those that a host has claimed: a failover may have lost their end."""
    engine, crew = Waiting(), stage.loop.crew
    job = Evaluate(TaskId("t"), ProjectId("p"), "t:1:0")
    engine.known.append(replace(waits(job, "any"), token=CLAIM, host="h1"))
    hosts = SqlHosts(stage.app.store.database)
    planner = Planner(
        store=stage.app.store, crew=crew, engine=engine, hosts=hosts, clock=stage.time
    )

    planner.turned()
    assert engine.again == []
    crew.troubles[MINE] = failed(None, "the database restarts", now=0.0)
    planner.turned()
    assert engine.again == ["judge t"]
    del crew.troubles[MINE]
    planner.turned()
    assert engine.again == ["judge t"]


def test_a_job_that_no_host_can_do_is_shown_to_people_until_one_can(stage) -> None:
    store, crew, engine = stage.app.store, stage.loop.crew, Waiting()
    hosts = SqlHosts(store.database)
    hosts.put(Host(name="h1", seen=1.0))
    planner = Planner(store=store, crew=crew, engine=engine, hosts=hosts, clock=stage.time)
    id, job = judged(stage)
    engine.known.append(waits(job, "gpu"))

    for _ in range(SAME_FAILURES):
        planner.turned()
        stage.time.at += AGAIN
    planner.turned()

    assert "waits: no host has gpu" in stage.world.task(id).troubled
    assert set(engine.again) == {f"judge {id}"}

    hosts.put(Host(name="h2", labels=("gpu",), seen=1.0))
    stage.time.at += AGAIN
    planner.turned()
    assert crew.troubles == {}
    assert crew.do(job, lambda: False) == 0.0
    assert stage.world.task(id).troubled == ""


def test_a_change_is_taken_where_its_clone_is_and_judged_where_the_labels_are(stage) -> None:
    crew = stage.loop.crew
    id, job = judged(stage)
    crew.fleet = Lacks()

    assert crew.do(job, lambda: False) > 0
    assert stage.world.task(id).candidate
    assert stage.world.task(id).status is Status.AGENT_REVIEW
    assert stage.app.store.gate_results(id, 0, 10) == ()

    crew.fleet = NoFleet()
    assert crew.do(job, lambda: False) == 0.0
    assert "tests" in stage.world.task(id).passed


@pytest.mark.parametrize("looks", range(6))
def test_what_was_interrupted_while_it_was_judged_is_judged_again(stage, looks) -> None:
    """As a host that Temporal does not hear, while the job is still its own."""
    crew = stage.loop.crew
    id, job = judged(stage)
    left = iter(range(looks))

    crew.do(job, lambda: next(left, None) is None)

    assert crew.do(job, lambda: False) == 0.0
    assert "tests" in stage.world.task(id).passed


def test_sessions_are_attended_to_and_a_test_that_ended_turns_its_train(stage) -> None:
    store, engine = stage.app.store, Waiting()
    id = stage.world.create()
    stage.turn()
    [session] = stage.alive(id)
    project = stage.world.task(id).project
    test = TestTree(project, "main", Commit("c"), Built(Commit("d"), Tree("e")))
    planner = Planner(
        store=store,
        crew=stage.loop.crew,
        engine=engine,
        hosts=SqlHosts(store.database),
        clock=stage.time,
    )
    engine.jobs.append(test)
    planner.turned()
    assert engine.jobs == [test]  # the task has no host yet

    trains = stage.loop.crew.trains
    trains.turn(store.project(project), stage.loop.engine)
    assert trains.due() == ()
    engine.jobs.remove(test)
    stage.app.coordinator.turn(id, lambda seen: placed(seen.task, "h1", seen.now))
    planner.turned()

    assert engine.jobs == [Attend(session, id, project)]
    assert [it.id for it in trains.due()] == [project]


def test_a_session_whose_task_has_no_host_any_more_is_attended_to_on_its_own(stage) -> None:
    """As where its host gave the task away while the session began."""
    store, engine = stage.app.store, Waiting()
    id = stage.world.create()
    work = attending(stage, [])
    work.place(id, "h1")
    stage.turn()
    [session] = stage.alive(id)
    work.place(id, "")
    planner = Planner(
        store=store,
        crew=stage.loop.crew,
        engine=engine,
        hosts=SqlHosts(store.database),
        clock=stage.time,
    )

    planner.turned()

    assert engine.jobs == [Attend(session, id, stage.world.task(id).project)]


def attending(stage: Stage, waited: list[float], **more) -> HostWork:
    def wait(milliseconds: float) -> None:
        waited.append(milliseconds)
        stage.time.at += milliseconds / 1000

    return HostWork(
        store=stage.app.store,
        attendance=stage.app.attendance,
        monitor=stage.loop.monitor,
        sessions=stage.sessions,
        workspaces=stage.workspaces,
        clock=stage.time,
        wait=wait,
        **more,
    )


def with_hub(stage: Stage) -> None:
    stage.app.store.give_hub(stage.world.project().id, "hub")


def test_a_burst_of_tasks_puts_no_more_to_work_on_a_host_than_it_has_slots(stage) -> None:
    host, store = Host(name="h1", slots=2), stage.app.store
    work, hosts = attending(stage, [], name="h1"), SqlHosts(store.database)
    placing = Placing(hosts=hosts, clock=stage.time)
    ids = [stage.world.started(f"b{it}") for it in range(5)]

    def comes(id: TaskId) -> str:
        with placing.place(id, host, work, ()) as why:
            return why

    with ThreadPoolExecutor(5) as pool:
        refused = list(pool.map(comes, ids))

    here = [id for id in ids if stage.world.task(id).host == "h1"]
    assert (len(here), placing.free, placing.places) == (2, 0, 0)
    assert refused.count("host h1 has 2 agents at work, and as many slots") == 3
    assert comes(here[0]) == ""  # its next agent is not limited

    stage.turn()  # their agents begin
    assert hosts.at_work("h1", stage.time.now()) == 2
    assert comes(next(it for it in ids if it not in here)) != ""

    for id in here:
        stage.world.move(id, Status.CANCELLED)
        for session in stage.alive(id):
            stage.dies(session)
            stage.loop.look_after([session])
    placing.look(host)
    assert placing.places == 2


def test_a_task_is_not_placed_on_a_host_that_has_lost_its_agent(stage) -> None:
    host, id = Host(name="h1", slots=2), stage.world.started()
    placing = Placing(hosts=SqlHosts(stage.app.store.database), clock=stage.time)

    with placing.place(id, host, attending(stage, [], name="h1"), ("claude",)) as why:
        assert why == "host h1 has no claude that is installed and logged in"

    assert stage.world.task(id).host == ""


def in_a_fleet(stage: Stage) -> None:
    """Its project has a hub, and another host works on it."""
    store, root = stage.app.store, stage.world.root
    hub = root.with_name("hub.git")
    git(root, "clone", "--quiet", "--bare", ".", str(hub))
    store.give_hub(store.add_project(stage.world.project()).id, str(hub))
    SqlHosts(store.database).put(Host(name="h2", seen=store.database.now()))


def test_a_task_starts_whose_agent_only_other_hosts_have(stage) -> None:
    stage.harnesses.how = "npm install -g agent"
    id = stage.world.create(auto_start=False)
    with pytest.raises(Refused, match="agent scripted is not installed"):
        stage.app.coordinator.start(id)
    in_a_fleet(stage)

    stage.app.coordinator.start(id)

    assert stage.world.task(id).status is Status.WORKING


def test_a_file_is_no_agent_of_a_task_that_other_hosts_may_do(stage) -> None:
    in_a_fleet(stage)

    with pytest.raises(Refused, match="other hosts of the fleet do not have it") as refused:
        stage.world.create(agent="./agent.sh")

    assert "[agents.NAME]" in refused.value.fix
    assert stage.app.store.projects_ready() == ()


def test_what_a_worker_has_done_is_kept_while_it_works(stage) -> None:
    id = stage.world.create()
    stage.turn()
    with_hub(stage)
    [session] = stage.alive(id)
    waited = list[float]()
    work = attending(stage, waited, snapshot_every=10.0)
    job = Attend(session, id, stage.world.task(id).project)

    work.attend(job, lambda: len(waited) >= 100)  # 25 seconds

    assert stage.workspaces.taken == [id, id]


def test_a_host_that_gives_a_task_away_keeps_first_what_was_done(stage) -> None:
    id = stage.world.create()
    stage.turn()
    with_hub(stage)
    work = attending(stage, [], name="h2")
    work.place(id, "h2")
    project = stage.world.task(id).project

    work.host_lost(HostLost(id, project, "h2", moves=True))

    assert (stage.workspaces.taken, stage.world.task(id).host) == ([id], "")
    assert stage.alive(id) == []


def test_a_sessions_host_is_written_and_only_its_own_loss_ends_it(stage) -> None:
    id = stage.world.create()
    stage.turn()
    work = attending(stage, [])
    work.place(id, "h2")
    [first] = stage.alive(id)
    project = stage.world.task(id).project
    work.host_lost(HostLost(id, project, "h2"))  # it began before there were hosts
    work.place(id, "h3")
    stage.turn(GOODBYE)

    [second] = stage.alive(id)
    assert stage.app.store.session(second).host == "h3"
    work.host_lost(HostLost(id, project, "h2"))  # told again, and late

    assert stage.alive(id) == [second]
    assert stage.world.task(id).host == "h3"

    assert work.end_what_is_over([first, second]) == (second,)
    assert set(stage.sessions.ended) == {first}


def test_a_session_whose_host_was_gone_while_it_began_is_followed_by_one_on_the_next(stage) -> None:
    """As after a `kill -9` between the record of the session and the start of its agent."""
    id = stage.world.create()
    work = attending(stage, [])
    work.place(id, "h2")
    stage.sessions.refuses = "h2 is gone"
    stage.turn()
    [first] = stage.alive(id)
    assert stage.sessions.runs == []

    stage.sessions.refuses = ""
    work.place(id, "h3")
    stage.turn(GOODBYE)
    stage.turn(GOODBYE)

    [second] = stage.alive(id)
    assert stage.sessions.runs == [second]
    assert stage.app.store.session(second).host == "h3"
    assert stage.app.store.session(first).ended is not None
    assert stage.world.task(id).step_failures == 0


def test_a_host_that_gives_a_task_away_while_it_prepares_its_session_begins_none(stage) -> None:
    """As by `fleet drain --move`: the next host begins the session that was asked for."""
    id = stage.world.create()
    stage.app.coordinator.start(id)
    work = attending(stage, [], name="h1")
    work.place(id, "h1")
    project = stage.world.task(id).project
    prepare, spawner = stage.workspaces.prepare, stage.loop.crew.hands.spawner
    here = replace(spawner.attendance.coordinator.witness, host="h1")
    at_h1 = Attendance(replace(spawner.attendance.coordinator, witness=here))
    hands = stage.loop.crew.hands
    stage.loop.crew.hands = replace(hands, spawner=replace(spawner, attendance=at_h1))

    def while_it_moves(of: Project, task: Task) -> Path:
        work.host_lost(HostLost(id, project, "h1", moves=True))
        return Path(prepare(of, task))

    stage.workspaces.prepare = while_it_moves
    again = stage.loop.crew.do(CarryOut(id, project), lambda: False)

    assert again > 0
    assert (stage.alive(id), stage.sessions.runs) == ([], [])
    assert stage.loop.crew.troubles == {}

    stage.workspaces.prepare, stage.loop.crew.hands = prepare, hands
    work.place(id, "h2")
    stage.loop.crew.do(CarryOut(id, project), lambda: False)

    [session] = stage.alive(id)
    assert stage.sessions.runs == [session]
    assert stage.app.store.session(session).host == "h2"


def test_a_host_that_comes_to_a_job_late_takes_no_task_away_that_another_has_begun(stage) -> None:
    id = stage.world.create()
    first, late = attending(stage, [], name="h1"), attending(stage, [], name="h2")
    stage.app.coordinator.start(id)
    for host in (first, late, first):  # who has begun nothing is gone
        assert host.may_take_on(id)
        host.place(id, host.name)
    stage.turn()

    assert not late.may_take_on(id)
    assert stage.world.task(id).host == "h1"


def test_what_is_to_be_done_for_a_task_that_was_deleted_is_done(stage) -> None:
    work, project = attending(stage, [], name="h1"), stage.world.project().id
    gone = TaskId("gone")

    work.place(gone, "h1")

    assert work.may_take_on(gone)
    assert work.host_lost(HostLost(gone, project, "h2")) == 0.0


class Blinks:
    """A store that is not there when a task's sessions are asked for, the first time."""

    def __init__(self, store: Store) -> None:
        self._store, self._blinked = store, False

    def __getattr__(self, name: str) -> object:
        if name == "sessions" and not self._blinked:
            self._blinked = True
            raise Unavailable("the sessions were not read", why="it is down", fix="wait")
        return getattr(self._store, name)


def test_a_lost_host_is_recorded_whole_where_the_store_was_down_in_the_midst_of_it(stage) -> None:
    id, job = judged(stage)
    work = attending(stage, [], name="h1")
    work.place(id, "h2")
    work = replace(work, store=Blinks(stage.app.store))
    lost = HostLost(id, job.project, "h2")

    with pytest.raises(Unavailable):
        work.host_lost(lost)
    work.host_lost(lost)

    task = stage.world.task(id)
    assert (task.host, task.status) == ("", Status.WORKING)
    assert stage.alive(id) == []


def test_what_an_agent_hands_in_on_a_host_that_records_its_own_loss_is_done_again(stage) -> None:
    """A host that was cut off and is back may be given the job of recording that it was lost."""
    id = stage.world.create()
    stage.turn()
    work = attending(stage, [], name="h1")
    work.place(id, "h1")
    (stage.workspaces.place(id) / "TASK.md").write_text(HANDOFF)

    work.host_lost(HostLost(id, stage.world.task(id).project, "h1"))

    task = stage.world.task(id)
    assert (task.host, task.status, task.candidate) == ("", Status.WORKING, "")
    assert stage.alive(id) == []
    stage.turn(GOODBYE)
    [_again] = stage.alive(id)


def test_a_job_whose_rules_cannot_be_read_now_stays_where_it_waits(stage) -> None:
    """As on a new leader whose mirror lacks the tip while the hub is down."""
    store, engine = stage.app.store, Waiting()
    known, unknown = judged(stage)[1], a_test_of(stage)
    engine.known += [waits(known, "gpu"), waits(unknown, "gpu")]
    Planner(
        store=store,
        crew=stage.loop.crew,
        engine=engine,
        hosts=SqlHosts(store.database),
        clock=stage.time,
        can_read=lambda job: job is known,
    ).turned()

    assert engine.placed == [lane_of(known)]
    assert sorted(engine.again) == sorted([lane_of(known), lane_of(unknown)])


def test_a_test_of_the_train_is_handed_back_by_a_host_that_lacks_a_label(stage) -> None:
    crew, job = stage.loop.crew, a_test_of(stage)
    crew.fleet = attending(stage, [], lacks=lambda it: it is job)

    assert crew.do(job, lambda: False) > 0
    assert crew.troubles == {}


def a_test_of(stage: Stage) -> TestTree:
    project = stage.world.project().id
    return TestTree(project, "main", Commit("c"), Built(Commit("d"), Tree("e")))


@pytest.mark.parametrize("over", [False, True])
def test_a_host_takes_up_what_an_orchestrator_alone_began_in_its_home(stage, over) -> None:
    id = stage.world.create()
    stage.turn()
    [session] = stage.alive(id)
    if over:
        stage.dies(session)
        stage.loop.look_after([session])
    work = attending(stage, [], name="h1")

    work.adopt([session, SessionId("not-known")])
    work.adopt([session])

    assert stage.world.task(id).host == "h1"
    assert stage.app.store.session(session).host == "h1"
    assert (stage.app.store.session(session).ended is not None) == over


def test_a_host_does_not_take_back_a_task_that_was_given_away(stage) -> None:
    id = stage.world.create()
    work = attending(stage, [], name="h1")
    work.place(id, "h1")
    stage.turn()
    [session] = stage.alive(id)
    work.host_lost(HostLost(id, stage.world.task(id).project, "h1"))

    work.adopt([session])

    assert stage.world.task(id).host == ""


def test_a_host_takes_up_no_task_that_has_been_on_another_host_since(stage) -> None:
    id = stage.world.create()
    stage.turn()
    [first] = stage.alive(id)
    elsewhere = attending(stage, [], name="h2")
    elsewhere.host_lost(HostLost(id, stage.world.task(id).project, "h2"))
    elsewhere.place(id, "h2")
    stage.turn(GOODBYE)
    elsewhere.place(id, "")

    attending(stage, [], name="h1").adopt([first])

    assert stage.world.task(id).host == ""
