"""What a gate does, in words."""

from collections.abc import Iterator

from lockgate.core.config.settings import SandboxLevel, Settings
from lockgate.core.model.gates import (
    CommandGate,
    DifferentialGate,
    Gate,
    HumanGate,
    MultipassReviewGate,
    ParallelReviewGate,
    Where,
    kind_of,
)
from lockgate.core.model.task import GateKind
from lockgate.faces.words import one_line

DOES = {
    GateKind.COMMAND: "runs its command on a clean checkout of the change; the exit decides",
    GateKind.DIFFERENTIAL: "runs base's tests and the change's tests on both codes, and compares",
    GateKind.PARALLEL_REVIEW: "has one reviewer for each dimension read the change",
    GateKind.MULTIPASS_REVIEW: "has one reviewer read the change, pass after pass",
    GateKind.HUMAN: "asks a human for a yes to this very change",
}
PASSES = {
    GateKind.COMMAND: "the command exits 0, and its report, where there is one, has no failed test",
    GateKind.DIFFERENTIAL: "what was green on base is green, and new tests test something",
    GateKind.PARALLEL_REVIEW: "every reviewer has spoken, and nothing found is P0 or P1",
    GateKind.MULTIPASS_REVIEW: "the reviewer has converged, and nothing found is P0 or P1",
    GateKind.HUMAN: "lockgate approve ID; it holds while the change is the same",
}
FAILS = {
    GateKind.COMMAND: "another exit in every attempt, a failed test in the report, the time-out;"
    " or a change edits what it runs, and base's version of that disagrees",
    GateKind.DIFFERENTIAL: "a test that was green on base is red, or a new one passes on old code",
    GateKind.PARALLEL_REVIEW: "a finding that is P0 or P1",
    GateKind.MULTIPASS_REVIEW: "a finding that is P0 or P1",
    GateKind.HUMAN: "lockgate reject ID -m TEXT; the text is what the agent is told",
}
WAITS = {
    GateKind.DIFFERENTIAL: "tests were removed or expect something else: a human is asked",
    GateKind.HUMAN: "until a human answers, however long that takes",
}
BREAKS = {
    GateKind.COMMAND: "it cannot be started, or the sandbox, its memory or its disk fails",
    GateKind.DIFFERENTIAL: "tests do not report by name, base was not measured, the sandbox fails",
    GateKind.PARALLEL_REVIEW: "a reviewer ends without a verdict, twice",
    GateKind.MULTIPASS_REVIEW: "the reviewer ends without a verdict, twice",
}


FAST = "; the task is then stuck at once (fail_fast)"
PLACES = {Where.CHANGE: "on a task's change", Where.TRAIN: "on what the train would land"}


def runs(gate: Gate) -> str:
    match gate:
        case CommandGate() | DifferentialGate():
            return one_line(gate.command)
        case ParallelReviewGate():
            return f"reviewers: {', '.join(gate.reviewers)}"
        case MultipassReviewGate():
            return "a reviewer"
        case HumanGate():
            return one_line(gate.prompt)


def applies(gate: Gate) -> str:
    return one_line(gate.place.when) or "always"


def explained(gate: Gate, settings: Settings) -> dict[str, str]:
    return dict(_explained(gate, settings))


def _explained(gate: Gate, settings: Settings) -> Iterator[tuple[str, str]]:
    kind = kind_of(gate)
    yield "gate", f"{gate.name} ({kind})"
    yield "does", DOES[kind]
    yield "runs", runs(gate)
    if isinstance(gate, CommandGate | DifferentialGate):
        yield from _running(gate, settings)
    yield "applies", applies(gate)
    yield "where", " and ".join(PLACES[it] for it in gate.place.on)
    yield "beside", _beside(gate)
    yield "passes", PASSES[kind]
    yield "fails", FAILS[kind] + (FAST if gate.place.fail_fast else "")
    yield "waits", WAITS.get(kind, "never")
    yield "breaks", f"{BREAKS.get(kind, 'never')}; that costs the agent nothing"


def _running(gate: CommandGate | DifferentialGate, settings: Settings) -> Iterator[tuple[str, str]]:
    limits, box = settings.limits, settings.sandbox
    wait = f"{limits.call_base_delay_ms} ms, then {limits.call_backoff:g} times as long"
    tries = f"at most {gate.attempts}, after {wait}; a pass after a failure is FLAKY"
    yield "attempts", tries if gate.attempts > 1 else "one"
    yield "time-out", f"{gate.timeout} s, then it is killed, and has failed"
    yield "report", str(gate.report or "by looking: files in $OUT, else what it prints")
    if box.level is SandboxLevel.NONE:
        yield "sandbox", "none: it runs as you do"
    else:
        net = "the network" if box.network else ", ".join(box.allow) or "no network"
        room = f"{box.memory_mb} MB of memory, {box.scratch_mb} MB of scratch"
        yield "sandbox", f"bubblewrap, {net}, {room}, {box.pids} processes"


def _beside(gate: Gate) -> str:
    word = gate.place.exclusive
    alone = f"; never beside another gate with the word {one_line(word)!r}" if word else ""
    if gate.place.serial:
        return f"alone: what is before it must have passed, what is behind it waits{alone}"
    return f"together with its neighbours that are not serial{alone}"
