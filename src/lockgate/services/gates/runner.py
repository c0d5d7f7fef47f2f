"""Runs the gates of a change in their waves: neighbours together, a serial one alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from threading import Lock

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.config.settings import Settings
from lockgate.core.lifecycle import approvals
from lockgate.core.model.brought import Brought, SetUpFailed, judged_with, unprepared
from lockgate.core.model.brought import question as own_question
from lockgate.core.model.facts import redacted
from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.gates import (
    CommandGate,
    DifferentialGate,
    Gate,
    HumanGate,
    MultipassReviewGate,
    ParallelReviewGate,
    Where,
    as_pinned,
    condition,
    kind_of,
    waves,
    with_protected,
)
from lockgate.core.model.results import Broken, Failed, Passed, SingleGateResult, proof_of
from lockgate.core.model.secrets import hiding
from lockgate.core.model.spans import GATE, UNTRACED, Context
from lockgate.core.model.task import REVIEWS, Task
from lockgate.core.text.steering import asked_of, touched
from lockgate.core.wrappers.edits import Edit, asking, question
from lockgate.errors import NotPrepared, Unavailable
from lockgate.ports import (
    Candidate,
    Conditions,
    GateRun,
    GateRuns,
    Project,
    Secrets,
    Upkeep,
    Workspaces,
    candidate_of,
)
from lockgate.ports.spans import NoSpans, Spans
from lockgate.services.gates.command import Patience, judge_command

Cancelled = Callable[[], bool]
Tell = Callable[[Gate, SingleGateResult | None], None]  # a gate begins, or has its result


def silent(_gate: Gate, _result: SingleGateResult | None) -> None:
    pass


class Facts(Struct, frozen=True, kw_only=True):
    """What a gate's `when` may ask of what is judged, besides its name."""

    goal: str
    branch: str
    agent: str
    priority: int = 3
    iteration: int = 1


class Evaluation(Struct, frozen=True, kw_only=True):
    """What is judged, and by which settings."""

    candidate: Candidate
    facts: Facts
    files: tuple[str, ...]
    settings: Settings
    task: Task | None = None  # whose passed gates and humans' answers count
    settled: frozenset[str] = frozenset()  # gates whose wrappers were compared with base's before
    span: Context = UNTRACED  # in which it goes on
    spans: dict[str, Context] = field(default_factory=dict[str, Context])  # of its gates, by name

    @property
    def project(self) -> Project:
        return self.candidate.project

    @property
    def protected(self) -> tuple[str, ...]:
        return self.task.protected if self.task else ()

    @property
    def passed(self) -> tuple[str, ...]:
        return self.task.passed if self.task else ()

    def place_in(self, home: Path, what: str) -> Path:
        return home / "runs" / self.candidate.name / f"{self.facts.iteration}-{what}"


FLAKY = "flaky"  # added to such a key for runs of base that disagree


def measured_as(it: Evaluation, tree: str, command: str, start: str = "") -> tuple[str, ...]:
    """By which key base's own runs of a command are kept; `tree` is base's."""
    return (it.project.id, tree, it.candidate.config_hash, command, start)


def evaluation_of(
    project: Project, task: Task, files: tuple[str, ...], settings: Settings
) -> Evaluation:
    """Of a task's change."""
    return Evaluation(
        candidate=candidate_of(project, task),
        facts=Facts(
            goal=task.goal,  # an agent could rewrite the summary and so skip a gate
            branch=task.branch,
            agent=task.agent,
            priority=task.priority,
            iteration=task.iteration,
        ),
        files=files,
        settings=settings,
        task=task,
    )


Edited = Mapping[str, tuple[Edit, ...]]  # by gate: what it runs that the change edits
Compare = Callable[[Evaluation, CommandGate, tuple[Edit, ...], Passed, Patience], SingleGateResult]


class Wrapping(Struct, frozen=True):
    """How edits of wrappers are found, and the gate's run with base's version of them."""

    edited: Callable[[Evaluation], Edited]
    compared: Compare


class Clean(Struct):
    """The change's checkout, made for the first gate that wants one; each attempt finds it so."""

    workspaces: Workspaces
    it: Evaluation
    place: Path
    undisturbed: frozenset[str]
    kept: dict[Path, bytes] | None
    wrapping: Wrapping | None = None
    _lock: Lock = field(default_factory=Lock)
    _made: GateRun | None = None
    _edited: Edited | None = None
    _noted: bool = False
    _brought: list[Brought | SetUpFailed | None] = field(
        default_factory=list[Brought | SetUpFailed | None]
    )

    @property
    def brought(self) -> Brought | SetUpFailed | None:
        """What the change's own set-up brings; made for the first gate that runs something."""
        with self._lock:
            if not self._brought:
                self._brought.append(self.workspaces.brought(self.it.candidate, self.it.settings))
            return self._brought[0]

    @property
    def edited(self) -> Edited:
        """Found for the first gate that wants to know."""
        with self._lock:
            if self._edited is None:
                self._edited = self.wrapping.edited(self.it) if self.wrapping else {}
            return self._edited

    def noting(self, brought: Brought | None, result: SingleGateResult) -> SingleGateResult:
        """The first gate that passes tells what the change brought."""
        with self._lock:
            told = judged_with(None if self._noted else brought, result)
            self._noted = self._noted or told is not result
            return told

    @property
    def question(self) -> str:
        """What a human is asked of, besides protected files."""
        with suppress(Unavailable):
            said = (question(self.edited), own_question(self.brought))
            return "; ".join(filter(None, said))
        return ""

    def edits_for(self, gate: Gate) -> tuple[Edit, ...]:
        """Its own, and those of gates that judge no change: their question has no other place."""
        known = {it.name for it in self.it.settings.gates if Where.CHANGE in it.place.on}
        others = (it for name, found in self.edited.items() if name not in known for it in found)
        return tuple(dict.fromkeys((*self.edited.get(gate.name, ()), *others)))

    def run(self, gate: str) -> GateRun:
        """Undisturbed, one that nothing encloses may have the checkout itself, not a copy."""
        with self._lock:
            if self._made is None:
                kept = self.kept is not None
                made = checked_out(self.workspaces, self.it, self.place, kept=kept)
                self._made = replace(made, upkeep=self._upkeep())
            span = self.it.spans.get(gate, UNTRACED)
            return replace(self._made, alone=gate in self.undisturbed, span=span)

    def discard(self) -> None:
        made = self._made and self._made.upkeep
        for place in {self.place, *(made.seen if made else ())} if self.kept is None else ():
            self.workspaces.discard(place)

    def _upkeep(self) -> Upkeep:
        """What was kept beside the checkout is known; that itself was just written."""
        seen = {} if self.kept is None else self.kept
        seen.pop(self.place, None)
        return Upkeep(self._renew, seen)

    def _renew(self) -> None:
        checked_out(self.workspaces, self.it, self.place)


class GateRunner(Struct, frozen=True, kw_only=True):
    home: Path
    workspaces: Workspaces
    gates: GateRuns
    conditions: Conditions
    delay: Callable[[float], object]
    differential: Callable[[Evaluation, DifferentialGate, Cancelled], SingleGateResult]
    flaky: Callable[[Evaluation, CommandGate], frozenset[str]] = lambda _it, _gate: frozenset()
    """The tests of a gate's command that pass and fail on base by themselves, as far as known."""
    wrapping: Wrapping | None = None  # None: what gates run is not compared with base's
    kept: dict[Path, bytes] | None = None  # what stays for the next, and how it looked
    secrets: Secrets | None = None  # whose values its results do not show
    spans: Spans = field(default_factory=NoSpans)
    words: dict[str, Lock] = field(default_factory=dict[str, Lock])  # of `exclusive`

    def results(
        self,
        it: Evaluation,
        cancelled: Cancelled,
        tell: Tell = silent,
        afterwards: ExitStack | None = None,
    ) -> tuple[SingleGateResult, ...]:
        """Up to the next review, or to the first wave in which a gate did not pass.

        It is tidied up at once, or by `afterwards` where the caller gives one.
        """
        place = it.place_in(self.home, "change")
        listed = tuple(waves(_next_gates(it, self._applies)))
        clean = Clean(self.workspaces, it, place, _undisturbed(listed), self.kept, self.wrapping)

        def judged(gate: Gate) -> SingleGateResult:
            tell(gate, None)
            with self.spans.span(GATE, it.span, {"lockgate.gate": gate.name}) as span:
                it.spans[gate.name] = span.at
                result = self._judged(clean, gate, cancelled)
                span.failed = not isinstance(result, Passed)
            tell(gate, result)
            return result

        with ExitStack() as at_once:
            (afterwards or at_once).callback(clean.discard)
            results = _in_waves(listed, judged, cancelled)
        known = self.secrets.of(it.candidate, it.facts.agent) if self.secrets else ()
        return redacted(results, hiding(known))

    def _judged(self, clean: Clean, gate: Gate, cancelled: Cancelled) -> SingleGateResult:
        it, candidate = clean.it, clean.it.candidate
        if not candidate.commit:
            branch = it.facts.branch
            return Broken(gate.name, f"branch {branch} is neither in a workspace nor in git")
        if not self._applies(it, gate):
            why = f"not asked for: {condition(gate)}"
            return Passed(gate.name, proof_of(candidate.commit, candidate.rules, why))
        match gate:
            case HumanGate():
                return approvals.heard(it.task, gate, clean.question if it.protected else "")
            case CommandGate() | DifferentialGate():
                return self._with_own_set_up(clean, gate, cancelled)
            case ParallelReviewGate() | MultipassReviewGate():
                return Broken(gate.name, "a review is its reviewers' to judge")

    def _with_own_set_up(
        self, clean: Clean, gate: CommandGate | DifferentialGate, cancelled: Cancelled
    ) -> SingleGateResult:
        try:
            brought = clean.brought
        except Unavailable as error:
            return Broken(gate.name, str(error), passing=True)
        if isinstance(brought, SetUpFailed):
            return unprepared(gate.name, brought)
        return clean.noting(brought, self._ran(clean, gate, cancelled))

    def _ran(
        self, clean: Clean, gate: CommandGate | DifferentialGate, cancelled: Cancelled
    ) -> SingleGateResult:
        if isinstance(gate, CommandGate):
            return self._commanded(clean, gate, cancelled)
        it = clean.it
        with self._alone(gate):
            result = approvals.consented(it.task, self.differential(it, gate, cancelled))
            return asking(result, clean.edits_for(gate))

    def _applies(self, it: Evaluation, gate: Gate) -> bool:
        if not touched(gate, it.settings.gates, it.files):
            return False
        if not gate.place.when:
            return True
        facts: dict[str, object] = {
            "id": it.candidate.name,
            "summary": it.facts.goal,
            "branch": it.facts.branch,
            "agent": it.facts.agent,
            "priority": it.facts.priority,
            "iteration": it.facts.iteration,
        }
        change: dict[str, object] = {"paths": list(it.files), "files_changed": len(it.files)}
        return self.conditions.hold(gate.place.when, facts, change)

    def _commanded(self, clean: Clean, gate: CommandGate, cancelled: Cancelled) -> SingleGateResult:
        limits, patience = clean.it.settings.limits, Patience(self.delay, cancelled)
        with self._alone(gate):
            try:
                run = clean.run(gate.name)
                flaky = partial(self.flaky, clean.it, gate)
                result = judge_command(self.gates, gate, run, limits, patience, flaky)
                return _with_bases_wrapper(clean, gate, result, patience)
            except NotPrepared as error:
                said = f"{error}; {error.fix}"
                return Failed(gate.name, (Finding(Priority.P1_MAJOR, said),))
            except Unavailable as error:
                return Broken(gate.name, str(error), passing=True)

    def _alone(self, gate: Gate) -> Lock:
        word = gate.place.exclusive
        return self.words.setdefault(word, Lock()) if word else Lock()


def _with_bases_wrapper(
    clean: Clean, gate: CommandGate, result: SingleGateResult, patience: Patience
) -> SingleGateResult:
    """A pass must hold with base's version too of what the command runs, if that is edited."""
    if not isinstance(result, Passed) or clean.wrapping is None:
        return result
    own = clean.edited.get(gate.name, ())
    if own and gate.name not in clean.it.settled:
        result = clean.wrapping.compared(clean.it, gate, own, result, patience)
    return asking(result, clean.edits_for(gate))


def _in_waves(
    listed: Sequence[Sequence[Gate]],
    judged: Callable[[Gate], SingleGateResult],
    cancelled: Cancelled,
) -> tuple[SingleGateResult, ...]:
    results: list[SingleGateResult] = []
    for wave in listed:
        results += _together(wave, judged)
        if cancelled() or not all(isinstance(result, Passed) for result in results):
            break
    return tuple(results)


def _together(
    wave: Sequence[Gate], judged: Callable[[Gate], SingleGateResult]
) -> Sequence[SingleGateResult]:
    if len(wave) == 1:
        return [judged(wave[0])]
    with ThreadPoolExecutor(len(wave)) as pool:
        return list(pool.map(judged, wave))


def _undisturbed(listed: Sequence[Sequence[Gate]]) -> frozenset[str]:
    """The gates beside which no other one uses the checkout."""
    commands = [[it.name for it in wave if isinstance(it, CommandGate)] for wave in listed]
    return frozenset(names[0] for names in commands if len(names) == 1)


def checked_out(
    workspaces: Workspaces, it: Evaluation, place: Path, *, kept: bool = False
) -> GateRun:
    """The candidate, clean and set up, in a place that the caller discards or keeps."""
    candidate = it.candidate
    if not kept:
        workspaces.discard(place)
    tree = workspaces.checkout(candidate, place)
    workspaces.set_up(candidate, it.settings, place, own=True)
    return GateRun(
        checkout=place,
        base=workspaces.base(it.project),
        commit=candidate.commit,
        tree=tree,
        config_hash=candidate.config_hash,
        sandbox=it.settings.sandbox,
        services=it.settings.services,
        data=workspaces.service_data(candidate, it.settings, candidate.commit),
    )


def _next_gates(it: Evaluation, applies: Callable[[Evaluation, Gate], bool]) -> Sequence[Gate]:
    """Those of a change that have not passed on it, up to the first review that is asked for."""

    def until_review() -> Iterator[Gate]:
        rules = it.candidate.rules
        gates = as_pinned(it.settings.gates, rules.gates if rules else ())
        for gate in with_protected(gates, asked_of(it.protected, rules)):
            if Where.CHANGE not in gate.place.on or gate.name in it.passed:
                continue
            if kind_of(gate) in REVIEWS and applies(it, gate):
                return
            yield gate

    return tuple(until_review())
