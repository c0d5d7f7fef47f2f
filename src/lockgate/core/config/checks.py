"""What is wrong with a configuration though every value of it is allowed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from lockgate.core.config.settings import (
    HARNESSES,
    OWN_LABELS,
    AgentSettings,
    MergeMode,
    Service,
    Settings,
    Step,
    known_agents,
)
from lockgate.core.config.shell_masks import masked
from lockgate.core.model.dag import Cycle, TaskDAG, UnknownNode
from lockgate.core.model.gates import (
    CHANGE_CHECK,
    PROTECTED,
    CommandGate,
    DifferentialGate,
    Gate,
    HumanGate,
    MultipassReviewGate,
    ParallelReviewGate,
    Where,
    kind_of,
)

FORGE_LOGINS = ("GH_", "GITHUB_", "LOCKGATE_GITHUB_")  # how their variables begin
# Gates whose command stands in `[commands]`, by name; a differential gate's is the test command.
COMMAND_KEYS = {"tests": "test", "typecheck": "typecheck"}


class Problem(Struct, frozen=True):
    """`where` is the key, an entry of a list by its name: ("gates", "list", "tests", "command")."""

    where: tuple[str, ...]
    says: str


def problems(settings: Settings) -> tuple[Problem, ...]:
    """All of them; an empty answer means that the configuration can be used."""
    return (
        *(it for gate in settings.gates for it in _of_gate(gate, settings)),
        *_of_steps(settings.steps),
        *_of_agents(settings),
        *_of_services(settings.services),
        *_of_read(settings.sandbox.read),
        *_of_forge_logins(settings),
        *_of_labels(("fleet", "needs"), settings.needs),
    )


def repeated_gates(names: Iterable[str]) -> tuple[Problem, ...]:
    return tuple(_repeated(("gates", "list"), names))


def unknown_skips(skip: Iterable[str], known: Sequence[str]) -> tuple[Problem, ...]:
    """A name that no gate has would leave in what somebody believes to be out."""
    there = ", ".join(known) or "none"
    return tuple(
        Problem(("gates", "skip"), f"no gate is called {name!r}; there are {there}")
        for name in skip
        if name not in known
    )


def _of_gate(gate: Gate, settings: Settings) -> Iterator[Problem]:
    where = ("gates", "list", gate.name)
    yield from _of_any_gate(gate, where)
    match gate:
        case CommandGate() | DifferentialGate():
            yield from _of_labels((*where, "needs"), gate.needs)
            if not gate.command.strip():
                yield Problem((*where, "command"), _no_command(gate))
        case ParallelReviewGate():
            if not gate.blocking:
                says = f"gate {gate.name} could never fail: every dimension of it is advisory"
                yield Problem((*where, "dimensions"), says)
            yield from _of_review(gate, settings)
        case MultipassReviewGate():
            yield from _of_review(gate, settings)
        case HumanGate():
            yield from _only_on_change(gate)


def _of_any_gate(gate: Gate, where: tuple[str, ...]) -> Iterator[Problem]:
    if not gate.place.on:
        yield Problem((*where, "on"), f"gate {gate.name} runs nowhere; say change, train or both")
    if gate.name in {PROTECTED, CHANGE_CHECK}:
        says = f"the name {gate.name} is that of a gate of Lockgate's own; choose another"
        yield Problem(where, says)


def _no_command(gate: CommandGate | DifferentialGate) -> str:
    key = "test" if isinstance(gate, DifferentialGate) else COMMAND_KEYS.get(gate.name)
    place = f"set [commands] {key}" if key else 'give it command = "…"'
    return f"gate {gate.name} has no command, and a gate that runs nothing never passes; {place}"


def _of_review(
    gate: ParallelReviewGate | MultipassReviewGate, settings: Settings
) -> Iterator[Problem]:
    yield from _only_on_change(gate)
    if gate.reviewer and gate.reviewer not in known_agents(settings):
        where = ("gates", "list", gate.name, "reviewer")
        yield Problem(where, _unknown_agent(gate.reviewer, settings))


def _only_on_change(gate: Gate) -> Iterator[Problem]:
    if Where.TRAIN in gate.place.on:
        says = f'gate {gate.name} judges the change, not a candidate of the train; on = ["change"]'
        yield Problem(
            ("gates", "list", gate.name, "on"), f"{says} is all a {kind_of(gate)} gate has"
        )


def _of_steps(steps: tuple[Step, ...]) -> Iterator[Problem]:
    yield from _repeated(("steps",), (step.name for step in steps))
    for step in steps:
        if not step.command.strip():
            says = f"step {step.name} has no command; give it one, or set [commands] test"
            yield Problem(("steps", step.name, "command"), says)
    match TaskDAG[str].of({step.name: step.after for step in steps}):
        case UnknownNode(node, named):
            says = f"step {node} comes after {named!r}, and no step has that name"
            yield Problem(("steps", node, "after"), says)
        case Cycle(path):
            says = "steps wait for each other in a circle: " + " after ".join(path)
            yield Problem(("steps", path[0], "after"), says)
        case TaskDAG():
            pass


def _of_services(services: tuple[Service, ...]) -> Iterator[Problem]:
    yield from _repeated(("services",), (service.name for service in services))
    for it in services:
        where = ("services", it.name)
        if it.kind and (it.command or it.ready):
            says = f"service {it.name} has both service and command or ready; {it.kind} is started"
            yield Problem(where, f"{says} by Lockgate: leave out command and ready")
        if not it.kind and not (it.command.strip() and it.name):
            says = 'a service needs service = "postgres" or "redis", or a name and a command'
            yield Problem(where, says)
        if it.inputs and not it.prepare:
            says = f"service {it.name} has inputs and no prepare; leave them out, or say prepare"
            yield Problem((*where, "inputs"), says)
        for path in it.inputs:
            if path.startswith("/") or ".." in path.split("/"):
                says = f"the path {path!r} leads out of the repository; name one inside it"
                yield Problem((*where, "inputs"), says)


def _of_agents(settings: Settings) -> Iterator[Problem]:
    if settings.project.agent not in known_agents(settings):
        says = _unknown_agent(settings.project.agent, settings)
        yield Problem(("project", "agent"), says)
    for agent in settings.agents:
        yield from _of_agent(agent, settings)


def _of_agent(agent: AgentSettings, settings: Settings) -> Iterator[Problem]:
    known, own = {*HARNESSES, *settings.installed}, agent.command or agent.resume or agent.env
    if agent.name in HARNESSES and own:
        says = f"the name {agent.name} is taken by an agent that Lockgate knows; choose another"
        yield Problem(("agents", agent.name), says)
    elif agent.name not in known and not agent.command:
        says = f"agent {agent.name} has no command; give it one"
        yield Problem(("agents", agent.name, "command"), says)
    if agent.fallback == agent.name:
        says = f"agent {agent.name} cannot stand in for itself; name another agent"
        yield Problem(("agents", agent.name, "fallback"), says)
    elif agent.fallback and agent.fallback not in known_agents(settings):
        says = _unknown_agent(agent.fallback, settings)
        yield Problem(("agents", agent.name, "fallback"), says)


def _of_labels(where: tuple[str, ...], labels: Iterable[str]) -> Iterator[Problem]:
    for label in labels:
        if label in OWN_LABELS:
            yield Problem(where, f"{label!r} is a word of Lockgate's own, and no label of a host")


def _of_read(paths: tuple[str, ...]) -> Iterator[Problem]:
    for path in paths:
        if not (path.startswith(("/", "~/")) or path == "~"):
            says = f"the path {path!r} is relative; begin it with / or ~/"
            yield Problem(("sandbox", "read"), says)


def _of_forge_logins(settings: Settings) -> Iterator[Problem]:
    """Who can push or approve at the forge is never code that an agent wrote."""
    named: list[tuple[tuple[str, ...], str]]
    named = [(("env", "pass"), it) for it in settings.env.passed]
    named += [(("agents", agent.name, "env"), it) for agent in settings.agents for it in agent.env]
    for where, name in named:
        if name.upper().startswith(FORGE_LOGINS):
            yield Problem(where, f"{name} is a login at a forge, which agents and gates never get")


def _unknown_agent(name: str, settings: Settings) -> str:
    known = ", ".join(known_agents(settings))
    return f"no agent is called {name!r}; there are {known}, and [agents.{name}] would add it"


def _repeated(where: tuple[str, ...], names: Iterable[str]) -> Iterator[Problem]:
    for name, times in Counter(names).items():
        if times > 1:
            yield Problem(
                (*where, name), f"the name {name!r} is there {times} times; each needs its own"
            )


# What a configuration's gates come to together: whom they hold, and where one could slip past.


Commanding = CommandGate | DifferentialGate


class Masked(Struct, frozen=True):
    """A gate whose command cannot fail, and why."""

    gate: str
    command: str
    why: str


class Coverage(Struct, frozen=True, kw_only=True):
    """Gates that judge every change, those that judge some, those that judge none by themselves.

    `hole` says how a change could land past every command gate; empty where none could.
    """

    always: tuple[Gate, ...]
    sometimes: tuple[Gate, ...]
    never: tuple[Gate, ...]
    masked: tuple[Masked, ...]
    hole: str


def coverage(settings: Settings) -> Coverage:
    reached = [it for it in settings.gates if _reached(it, settings)]
    soft = tuple(it for gate in _commands(settings.gates) for it in _masked(gate))
    return Coverage(
        always=tuple(it for it in reached if not it.place.conditional),
        sometimes=tuple(it for it in reached if it.place.conditional),
        never=tuple(it for it in settings.gates if it not in reached),
        masked=soft,
        hole=_hole(settings, reached, {it.gate for it in soft}),
    )


def why_unjudged(gate: Gate, *, compared: bool) -> str:
    """Why a commit alone, without a task, is not judged by it; empty where it is."""
    match gate:
        case ParallelReviewGate() | MultipassReviewGate():
            return "a review needs a task and its reviewers"
        case HumanGate():
            return "a human is asked in a task"
        case DifferentialGate() if not compared:
            return "there is nothing to compare with; name an earlier commit: --base REV"
        case CommandGate() | DifferentialGate():
            return "" if Where.CHANGE in gate.place.on else "it runs in the train only"


def _reached(gate: Gate, settings: Settings) -> bool:
    """What runs only in the train judges nothing where a human merges."""
    return Where.CHANGE in gate.place.on or settings.merge.mode is MergeMode.AUTO


def _commands(gates: Sequence[Gate]) -> tuple[Commanding, ...]:
    return tuple(it for it in gates if isinstance(it, Commanding))


def _masked(gate: Commanding) -> tuple[Masked, ...]:
    """The exit alone decides of a command; a differential gate wants the tests by their names."""
    why = masked(gate.command) if isinstance(gate, CommandGate) else ""
    return (Masked(gate.name, gate.command, why),) if why else ()


def _hole(settings: Settings, reached: Sequence[Gate], soft: set[str]) -> str:
    every, there = _commands(settings.gates), _commands(reached)
    if not every:
        return f"formula {settings.formula} and the list have no gate that runs a command"
    if not there:
        return f"{_named(every)} would run in the train only, and [merge] mode is manual"
    if all(it.place.when for it in there):
        return f"{_named(there)}: each has a `when`, and a change for which none holds is not run"
    if all(it.place.when or it.name in soft for it in there):
        return f"{_named([it for it in there if it.name in soft])} cannot fail"
    return _soft_paths([it for it in there if not it.place.when], soft)


def _soft_paths(there: Sequence[Commanding], soft: set[str]) -> str:
    """A gate that cannot fail, alone on its `paths`: `touched` lets no other one judge those."""
    firm = [it for it in there if it.name not in soft]
    alone = [it for it in there if it.name in soft and it.place.paths]
    if not alone or any(not it.place.paths for it in firm):
        return ""
    return f"{_named(alone)} cannot fail, and no other one judges {', '.join(alone[0].place.paths)}"


def _named(gates: Sequence[Gate]) -> str:
    names = ", ".join(it.name for it in gates)
    return f"gate {names}" if len(gates) == 1 else f"gates {names}"
