"""What people and programs read of a repository that was set up, and of steps."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lockgate.core.config.baseline import Colour
from lockgate.core.config.checks import coverage
from lockgate.core.config.settings import Expect
from lockgate.core.lifecycle import binary_gate, gate_orchestrator
from lockgate.core.lifecycle.gate_orchestrator import Advance, Complete, Escalate, Stay
from lockgate.core.model.facts import as_facts
from lockgate.faces.words.gate import check_lines, finding_text
from lockgate.faces.words.task import one_line
from lockgate.services.gates.steps import StepRun

if TYPE_CHECKING:
    from lockgate.core.discovery.repairs import Tried
    from lockgate.services.setup.init import Initialised

MEANS = {
    Colour.RED: "it fails on base already",
    Colour.FLAKY: "the same commit passes and fails: fix that, or its gate will fail at random",
    Colour.BROKEN: "it could not be run",
}


def found_lines(made: "Initialised") -> Iterator[str]:
    """What was found in which file, before any of it is run."""
    for key, value in made.found.items():
        yield f"found  {key}: {one_line(value)}"
    yield from (f"note: {one_line(it)}" for it in made.remarks)


def proposed_text(made: "Initialised") -> str:
    """The file and why, for `--dry-run`."""
    return "\n".join((*found_lines(made), "", made.text.rstrip(), "", "nothing was run or written"))


def proposed_facts(made: "Initialised") -> dict[str, object]:
    return {"path": made.path, "base": made.base, "found": dict(made.found), "text": made.text}


def initialised_text(made: "Initialised") -> str:
    lines = [line for it in made.tried for line in tried_lines(it, made.base)]
    lines.append(f"wrote {made.path}")
    if made.branch is None:
        lines.append(f"commit it on {made.base}: it counts once it is there")
    elif made.branch != made.base:
        lines.append(f"committed on {made.branch}; it counts once it is on {made.base}")
    else:
        lines.append(f"committed on {made.branch}")
    lines += [f"gate check: {it}" for it in check_lines(coverage(made.settings))]
    lines.append(_next(made))
    return "\n".join(lines)


def initialised_facts(made: "Initialised") -> dict[str, object]:
    return {
        "path": made.path,
        "base": made.base,
        "branch": made.branch,
        "found": dict(made.found),
        "baseline": [{**as_facts(it.baseline), **_facts(it)} for it in made.tried],
        "notes": [it for package in made.plan.packages for it in package.notes],
        "hole": coverage(made.settings).hole,
        "ready": made.ready,
        "next": _next(made),
    }


def _facts(it: "Tried") -> dict[str, object]:
    return {
        "tests": it.total or None,
        "left_out": it.red,
        "broke": it.broke or None,
        "noticed": it.noticed,
    }


def tried_lines(it: "Tried", base: str) -> Iterator[str]:
    found = it.baseline
    times = f"{found.passed} of {found.runs} runs passed" if found.runs > 1 else ""
    tests = f"{it.total} tests" if it.total and found.colour is not Colour.BROKEN else ""
    told = (found.colour.value, tests, times, f"{found.seconds:.1f} s")
    yield f"on {base}, {found.name}: {', '.join(part for part in told if part)}"
    if found.colour in MEANS:
        yield f"  {MEANS[found.colour]}"
    if it.red and found.colour is Colour.GREEN:
        held = f"changes are held to the other {it.total}"
        yield f"  {it.red} of {it.total + it.red} tests fail on {base} already; {held}"
    if it.late:
        yield "  it was ended: give its gate more time with `timeout`, or name a shorter command"
    if it.networked and found.colour is not Colour.GREEN:
        yield "  it seems to need the network, which gates do not have ([sandbox] network = true)"
    if found.slow:
        yield "  it is slow: every change pays that, and more than once where it fails"
    yield from _whys(found.why)
    yield from (f"    {finding_text(finding)[:600]}" for finding in found.findings)
    if it.broke and found.colour is Colour.GREEN:
        seen = "turned red, as it should" if it.noticed else "stayed green: the tests do not notice"
        yield f"  with {it.broke} broken it {seen}"


def _whys(why: str) -> Iterator[str]:
    """What could not be run and how that ended, then the lines that name an error, or the last."""
    first, *lines = [one_line(it)[:LONGEST] for it in why.splitlines() if it.strip()] or [""]
    if first:
        yield f"  why: {first}"
    yield from (f"    {it}" for it in ([it for it in lines if _ERROR.search(it)] or lines)[-MOST:])


_ERROR = re.compile(r"\b(?:error|fatal)\b|\bERR_", re.IGNORECASE)
LONGEST = 300  # characters of a line of it
MOST = 6  # lines of it
AGAIN = "lockgate init --force"


def _next(made: "Initialised") -> str:
    """The one thing to do now; `lockgate run` only where a gate was seen to pass and to fail."""
    tests = [it for it in made.tried if it.baseline.name.startswith("tests")]
    if made.ready:
        bring = "" if made.branch == made.base else f"bring {made.path} to {made.base}, then: "
        return f'next: {bring}lockgate run "what to do"'
    if tests and all(it.baseline.colour is Colour.GREEN for it in tests):
        return _unnoticed(tests)
    if tests:
        worst = next(it for it in tests if it.baseline.colour is not Colour.GREEN)
        return _failed(worst, made.base)
    return _nothing_ran(made)


def _unnoticed(tests: "Sequence[Tried]") -> str:
    if not any(it.broke for it in tests):
        return (
            "not ready: no source file was found to break, so nobody saw the tests fail."
            " See for yourself: lockgate gate run"
        )
    return (
        "not ready: the tests pass with the source broken, so they do not test it."
        f' Name a command that does: {AGAIN} --test-command "…"'
    )


def _failed(it: "Tried", base: str) -> str:
    if it.late:
        return (
            f"not ready: `{it.baseline.command}` did not end in time ({it.baseline.seconds:.0f} s)."
            f' Name a shorter command: {AGAIN} --test-command "…"; or give its gate more `timeout`'
        )
    if it.baseline.why:
        return (
            f"not ready: gate {it.baseline.name} could not be run. Fix what it says above,"
            f' or name what installs its needs: {AGAIN} --setup "…"'
        )
    return (
        f"not ready: `{it.baseline.command}` fails on {base}. Mend that,"
        f' or name another command: {AGAIN} --test-command "…"'
    )


def _nothing_ran(made: "Initialised") -> str:
    if made.unborn:
        return (
            "not ready: nothing was run, for nothing was committed yet."
            f" Commit your files, then: {AGAIN}"
        )
    if made.commands:
        return "not ready: nothing was run. See whether it passes: lockgate gate run"
    offered = [other.command for it in made.plan.packages for other in it.others]
    command = offered[0] if offered else "…"
    seen = " (seen in CI)" if offered else ""
    return (
        "not ready: no command was found that tests this repository."
        f" Name it: {AGAIN} --test-command {json.dumps(command, ensure_ascii=False)}{seen}"
    )


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
