"""What people and programs read of a repository that was set up."""

from collections.abc import Iterator
from dataclasses import asdict

from lockgate.core.config.baseline import Baseline, Colour
from lockgate.faces.cli.gate_words import finding_text
from lockgate.faces.words import one_line
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
        "baseline": [asdict(it) for it in made.baselines],
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
