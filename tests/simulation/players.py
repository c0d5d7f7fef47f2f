"""Those who use Lockgate in the simulation: agents that do well and badly, and a human."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lockgate.adapters.task_file.files import split_frontmatter
from lockgate.core.lifecycle.moves import Move
from lockgate.core.lifecycle.needs import Need, NeedKind
from lockgate.core.model.agents import Ending, Exit, Report, Usage
from lockgate.core.model.task import Cause, Role, Status, Task, TaskId
from lockgate.core.text.task_file import replace_section
from lockgate.services.task.callers import HUMAN, identify
from lockgate.services.task.sessions import Said
from lockgate.services.task.tasks import NewTask
from tests.scenarios.stage import FakeHarnesses
from tests.simulation.machine import BAD, Machine, Run
from tests.simulation.office import Office
from tests.simulation.scheduler import Process

S = Status
ENDED = frozenset({S.DONE, S.CANCELLED})
WORKERS = {"works": 10, "silent": 2, "crash": 2, "polite": 1, "asks": 1, "lost": 1, "limited": 1}
REGRETS = 12_000
DEPENDS = 0.25  # how often a task depends on another


class Harnesses(FakeHarnesses):
    """A session's output says what its program would say of itself."""

    def read(self, agent: str, settings: Any, output: str, exit: Exit) -> Report:
        until = float(output) if output else None
        return Report(native="n1", usage=Usage(0.1, 10), limited_until=until)


class Agents:
    """What each program does, from its start to its end; drawn by the seed."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.versions: dict[str, int] = {}
        self.reviewed: set[tuple[str, str]] = set()  # task and commit of which a PASS was written

    def plays(self, machine: Machine, run: Run) -> None:
        world = self.world
        world.scheduler.sleep(world.draw(0.5, 40.0))
        exit = self._worker(run) if run.session.role is Role.WORKER else self._reviewer(run)
        machine.exits_as(run, exit)

    def _worker(self, run: Run) -> Exit:
        world = self.world
        kind = world.pick(WORKERS) if world.wild else "works"
        match kind:
            case "crash":
                return Exit(ending=Ending.EXITED, code=1, seconds=9.0)
            case "polite":
                return Exit(ending=Ending.EXITED, code=0, seconds=9.0)
            case "lost":
                return Exit(ending=Ending.LOST)
            case "limited":
                until = world.clock.true() + world.draw(5.0, 300.0)
                world.machine.outputs[run.session.id] = str(until)
                return Exit(ending=Ending.LIMITED, seconds=9.0)
            case "asks":
                self._write(run, "Questions", f"Which one, {run.session.id}?")
                self._says(run, Move(S.CLARIFICATION))
            case _:
                self._works(run, signals=kind == "works")
        return Exit(ending=Ending.EXITED, code=0, seconds=9.0)

    def _works(self, run: Run, *, signals: bool) -> None:
        world, id = self.world, run.session.task
        number = self.versions[id] = self.versions.get(id, 0) + 1
        bad = BAD if world.wild and world.happens(0.25) else ""
        world.works.written[id] = f"{id}.{number}{bad}"
        world.scheduler.sleep(world.draw(0.1, 20.0))
        self._write(run, "Handoff", f"DONE: version {number}")
        if signals:
            done = Move(S.AGENT_REVIEW)
            heard = self._says(run, done)
            if world.wild and world.happens(0.4):
                self._later(run, done)
            if not heard or (world.wild and world.happens(0.3)):
                world.scheduler.sleep(world.draw(0.1, 5.0))
                self._says(run, done)
            world.scheduler.sleep(world.draw(0.1, 25.0))
            if world.wild and world.happens(0.2):  # what it does now is judged by nobody
                world.works.written[id] = f"{id}.{number}.later{BAD}"

    def _reviewer(self, run: Run) -> Exit:
        world, id = self.world, run.session.task
        task = world.truth.task(id)
        if world.wild and world.happens(0.15):
            return Exit(ending=Ending.EXITED, code=1)
        candidate = task.candidate if task else ""
        good = world.yard.is_good(world.yard.content.get(candidate, frozenset()))
        passes = good if not world.wild else world.happens(0.85 if good else 0.5)
        if passes:
            self.reviewed.add((id, candidate))
        self._write(run, "Review", f"{'PASS' if passes else 'FAIL'}\n\nBy {run.session.id}.")
        if not (world.wild and world.happens(0.2)):
            for target in (S.REVIEWING,) if passes else (S.WORKING, S.STUCK):
                if self._says(run, Move(target)):
                    break
            if world.wild and world.happens(0.3):
                self._later(run, Move(S.REVIEWING if passes else S.WORKING))
        world.scheduler.sleep(world.draw(0.1, 10.0))
        return Exit(ending=Ending.EXITED, code=0)

    def _write(self, run: Run, title: str, text: str) -> None:
        place = Path(run.session.directory or "") / "TASK.md"
        if not place.parent.is_dir():
            return
        front, body = split_frontmatter(place.read_text()) if place.exists() else (None, "")
        head = "" if front is None else f"---\n{front}---\n"
        place.write_text(head + replace_section(body, title, text))

    def _says(self, run: Run, move: Move) -> bool:
        """As `lockgate task update` in the sandbox; a second try where nobody answered."""
        token, id = run.start.token, run.session.task

        def said(office: Office) -> None:
            caller = identify(office.store, token)
            office.signals.move(id, move, caller, Said(summary="done"))

        told = self.world.command(f"{run.session.id} says {move.target}", said)
        if told == "no answer":
            self.world.scheduler.sleep(2.0)
            told = self.world.command(f"{run.session.id} says {move.target} again", said)
        return bool(told == "done")

    def _later(self, run: Run, move: Move) -> None:
        """The same signal once more, after its agent is long gone."""
        world = self.world
        process = Process(f"late {run.session.id}")

        def late() -> None:
            world.scheduler.sleep(world.draw(1.0, 200.0))
            self._says(run, move)

        world.scheduler.start(process, "signal", late)


class Human:
    """Does what `status` asks for, and now and then something else."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.away = False

    def lives(self) -> None:
        world = self.world
        while not self.away:
            world.scheduler.sleep(world.draw(3.0, 60.0) if world.wild else 10.0)
            tasks = world.truth.tasks()
            if not tasks:
                continue
            needs = [it for it in world.needs() if it.task]
            if needs and world.happens(0.8):
                self.answers(world.one_of(needs))
            elif world.wild and world.happens(0.25):
                self.meddles(world.one_of(tasks))

    def creates(self, number: int) -> None:
        world = self.world
        after = tuple(it.id for it in world.truth.tasks() if world.happens(DEPENDS))
        asked = NewTask(
            branch=f"t{number}",
            summary=f"Do {number}",
            priority=world.one_of((1, 3, 3, 5)),
            depends_on=after[:1],
        )
        done = "no answer"
        while done == "no answer":

            def create(office: Office) -> None:
                if not office.store.on_branch(world.project.id, asked.branch):
                    office.tasks.create(world.project, asked, HUMAN)

            done = world.command(f"create t{number}", create)
            world.scheduler.sleep(1.0)

    def answers(self, need: Need) -> None:
        task = self.world.truth.task(need.task)
        act = self._act(task, need.kind) if task else None
        if act:
            self.world.command(f"human answers {need.kind} of {need.task}", act)

    def meddles(self, task: Task) -> None:
        world, id = self.world, task.id
        acts: dict[str, Callable[[Office], object]] = {
            "cancel": lambda it: it.coordinator.move(id, Move(S.CANCELLED), HUMAN),
            "say": lambda it: it.people.say(id, "mind the gap", HUMAN),
            "interrupt": lambda it: it.people.say(id, "stop that", HUMAN, at_once=True),
            "respawn": lambda it: it.attendance.respawn(id, "", HUMAN),
            "stuck": lambda it: it.coordinator.move(id, Move(S.STUCK), HUMAN),
            "hold": lambda it: it.queue.hold(id, "not yet", HUMAN),
        }
        name = world.one_of(tuple(acts))
        world.command(f"human has {id} {name}", acts[name])

    def regrets(self, id: TaskId) -> None:
        """Cancels a change that is about to land, at the first moment at which that is allowed."""
        world = self.world
        for _ in range(REGRETS):
            world.scheduler.sleep(0.01)
            task = world.truth.task(id)
            if task is None or task.status in ENDED:
                return
            if not task.landed:
                break
        cancel, world.scheduler.favoured = Move(S.CANCELLED), "regrets"
        world.command(f"human regrets {id}", lambda it: it.coordinator.move(id, cancel, HUMAN))
        world.scheduler.favoured = ""

    def _act(self, task: Task, kind: NeedKind) -> Callable[[Office], object] | None:
        id, world = task.id, self.world
        broken = task.cause is Cause.GATE_BROKEN
        back = Move(S.AGENT_REVIEW) if broken else Move(S.WORKING, directive="try")
        acts: dict[NeedKind, Callable[[Office], object]] = {
            NeedKind.ANSWER: lambda it: it.people.answer(id, "that one", HUMAN),
            NeedKind.PAUSED: lambda it: it.runner.resume(id, "again"),
            NeedKind.LAND: lambda it: it.queue.say_yes(id, "", "", HUMAN),
            NeedKind.HELD: lambda it: it.queue.say_yes(id, "", "", HUMAN),
            NeedKind.APPROVE: lambda it: it.queue.say_yes(id, "", "", HUMAN),
            NeedKind.DEAD: lambda it: it.attendance.respawn(id, "", HUMAN),
            NeedKind.LIMIT: lambda it: it.attendance.respawn(id, "", HUMAN),
            NeedKind.STUCK: lambda it: it.coordinator.move(id, back, HUMAN),
            NeedKind.BUDGET: lambda it: it.coordinator.move(id, back, HUMAN),
            NeedKind.LOGIN: lambda it: it.coordinator.move(id, back, HUMAN),
            NeedKind.DEPENDENCY: lambda it: it.coordinator.move(id, Move(S.CANCELLED), HUMAN),
        }
        if world.wild and world.happens(0.1):
            if kind is NeedKind.APPROVE:
                return lambda it: it.approvals.reject(id, "no", (), "", HUMAN)
            return lambda it: it.coordinator.move(id, Move(S.CANCELLED), HUMAN)
        return acts.get(kind)
