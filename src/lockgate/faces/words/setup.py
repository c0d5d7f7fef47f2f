"""What people and programs read of a repository that was set up, and of steps."""

from collections.abc import Iterator

from lockgate.core.config.baseline import Baseline, Colour
from lockgate.core.config.settings import Expect
from lockgate.core.lifecycle import binary_gate, gate_orchestrator
from lockgate.core.lifecycle.gate_orchestrator import Advance, Complete, Escalate, Stay
from lockgate.core.model.values import as_facts
from lockgate.faces.words.gate import finding_text
from lockgate.faces.words.task import one_line
from lockgate.services.gates.steps import StepRun
from lockgate.services.setup.init import Initialised

MEANS = {
    Colour.RED: "it fails on base already, and until that is mended its gate fails for every change"
    " too; the differential gate holds nothing against a change that was red before it",
    Colour.FLAKY: "the same commit passes and fails: mend that, or its gate will cost attempts",
    Colour.BROKEN: "it could not be run, so its gate would wait for you",
}


def initialised_text(made: Initialised) -> str:
    lines = [f"wrote {made.path}"]
    lines += [f"  {key}: {one_line(value)}" for key, value in made.found.items()]
    lines += [line for it in made.baselines for line in _baseline(it)]
    if made.branch is None:
        lines.append(f"commit it on {made.base}: it counts once it is there")
    elif made.branch != made.base:
        lines.append(f"committed on {made.branch}; it counts once it is on {made.base}")
    else:
        lines.append(f"committed on {made.branch}")
    lines.append('next: lockgate run "what to do"')
    return "\n".join(lines)


def initialised_facts(made: Initialised) -> dict[str, object]:
    return {
        "path": made.path,
        "base": made.base,
        "branch": made.branch,
        "found": dict(made.found),
        "baseline": [as_facts(it) for it in made.baselines],
    }


def _baseline(it: Baseline) -> Iterator[str]:
    times = f"{it.passed} of {it.runs} runs passed" if it.runs > 1 else ""
    told = ", ".join(part for part in (it.colour.value, times, f"{it.seconds:.1f} s") if part)
    yield f"on base, {it.name}: {told}"
    if it.colour in MEANS:
        yield f"  {MEANS[it.colour]}"
    if it.slow:
        yield "  it is slow: every change pays that, and more than once where it fails"
    if it.why:
        yield f"  why: {one_line(it.why)}"
    yield from (f"    {finding_text(finding)}" for finding in it.findings)


# A step that was run, as people and programs read it.


TAIL = 4000  # characters of what it printed


def step_facts(ran: StepRun) -> dict[str, object]:
    tried, last = ran.tried, ran.tried.made[-1]
    moved = {} if ran.moved is None else gate_orchestrator.as_json(ran.moved)
    return {
        "task": ran.task.id,
        "node": tried.step.name,
        "phase": tried.step.phase,
        "command": tried.step.command,
        "expect": tried.step.expect,
        "commit": tried.commit,
        "exit_code": last.exit_code,
        "attempts": len(tried.made),
        "seconds": last.seconds,
        "sandbox": last.level,
        "output": _output(ran),
        "gate": binary_gate.as_json(tried.result),
        "failures": ran.task.step_failures,
        "steps_passed": ran.task.steps_passed,
        **moved,
    }


def step_text(ran: StepRun) -> str:
    tried, last = ran.tried, ran.tried.made[-1]
    ended = last.why or "killed" if last.exit_code is None else f"exit {last.exit_code}"
    wanted = " (a failure is wanted)" if tried.step.expect is Expect.FAIL else ""
    attempts = f" in {len(tried.made)} attempts" if len(tried.made) > 1 else ""
    lines = [
        f"step {tried.step.name} ({tried.step.phase}) on {tried.commit[:12]}: {tried.step.command}",
        _output(ran),
        f"{ended}{attempts}, {last.seconds:.1f} s{wanted}",
        _verdict(ran),
    ]
    return "\n".join(line for line in lines if line)


def _verdict(ran: StepRun) -> str:
    limit = ran.task.pinned.limits.step_failures if ran.task.pinned else 0
    match ran.moved:
        case Advance(following):
            return f"advance: the next step is {following}"
        case Complete():
            return "complete: all steps have passed"
        case Stay(reason):
            count = f"{ran.task.step_failures} of {limit}"
            return f"stay: {reason} (the worker's failures in a row: {count})"
        case Escalate():
            return f"escalate: {limit} failures in a row; a human is told, and this session ends"
        case None:
            word = "passed" if ran.tried.result.passed else "failed"
            return f"{word}; it is not the next step, so nothing moves"


def _output(ran: StepRun) -> str:
    last = ran.tried.made[-1]
    return f"{last.out.rstrip()}\n{last.err.rstrip()}".strip()[-TAIL:]
