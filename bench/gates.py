"""What running gates costs besides what the gates do: warm, cold, enclosed, and side by side."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from bench.harness import BUILD, AtMost, Measure, Medians, Work, clocked, interleave, main, say
from bench.home import make_home
from lockgate.adapters.gate_commands import CommandGates
from lockgate.adapters.reports import read_reports
from lockgate.adapters.sandbox import trouble
from lockgate.bootstrap import App
from lockgate.bootstrap.judging import gate_runner
from lockgate.core.evaluation import Passed
from lockgate.core.gates import CommandGate, Placement, Where
from lockgate.core.settings import SandboxLevel
from lockgate.ports import Project
from lockgate.services.gate_runner import Evaluation, GateRunner
from lockgate.services.rulebook import nobodys_task

GATES = 10
ROUNDS = 30
COLD_ROUNDS = 15
SLEEP = "1"  # seconds
ALONE = Placement(serial=True, on=(Where.CHANGE,))
TOGETHER = replace(ALONE, serial=False)
ENTRY = '[[gates.list]]\nname = "gate{}"\ntype = "command"\ncommand = "true"\n'
CONFIG = (
    '[project]\nagent = "scripted"\n[sandbox]\nlevel = "none"\n[gates]\nformula = "none"\n'
    + "".join(ENTRY.format(number) for number in range(GATES))
)
HOOK = (
    "      - {{id: hook{0}, name: hook{0}, entry: 'true', language: system,"
    " always_run: true, pass_filenames: false}}\n"
)
HOOKS = "repos:\n  - repo: local\n    hooks:\n" + "".join(HOOK.format(it) for it in range(GATES))
LOOP = f"for n in $(seq {GATES}); do sh -c true; done"
COPIES = (
    f'for n in $(seq {GATES}); do cp -a "$1" "$2" && (cd "$2" && sh -c true) && rm -rf "$2"; done'
)
PRE_COMMIT = "pre-commit run, ten hooks"
NONE, AUTO = f"{GATES} gates, warm, no sandbox", f"{GATES} gates, warm, enclosed"
COLD = "lockgate gate run, ten gates"
WAVE, ONE = f"a wave of {GATES} gates that sleep {SLEEP} s", f"one gate that sleeps {SLEEP} s"
SHELL, CLEAN = "a shell loop", "a shell loop, a clean copy each"


def bench(where: Path) -> list[Measure]:
    say("\ngates")
    app, project = make_home(where, CONFIG)
    try:
        return [*_warm(where, app, project), *_waves(app, project), *_cold(where)]
    finally:
        app.store.close()


def _warm(where: Path, app: App, project: Project) -> list[Measure]:
    commands = tuple(f"gate{number}" for number in range(GATES))
    judged = {
        NONE: _judging(app, project, commands, SandboxLevel.NONE),
        **({} if trouble() else {AUTO: _judging(app, project, commands, SandboxLevel.AUTO)}),
    }
    copies = (str(where / "repository"), str(where / "copy"))
    contenders: dict[str, Work] = {
        SHELL: clocked(lambda: _run("sh", "-c", LOOP)),
        CLEAN: clocked(lambda: _run("sh", "-c", COPIES, "loop", *copies)),
        **judged,
    }
    found = interleave(contenders, ROUNDS)
    measures = [
        Measure(name=NONE, ours=found[NONE], peer=SHELL, theirs=found[SHELL], target=AtMost(2)),
        Measure(name=NONE, ours=found[NONE], peer=CLEAN, theirs=found[CLEAN]),
    ]
    if AUTO not in found:
        return measures
    return [*measures, *_enclosing(found)]


def _enclosing(found: Medians) -> list[Measure]:
    """Beside the runner without a sandbox, which copies the tree, and beside a shell, which does
    not: the second is the one that the sandbox has to answer for.
    """
    added = (found[AUTO] - found[SHELL]) / GATES
    return [
        Measure(name=AUTO, ours=found[AUTO], peer=NONE, theirs=found[NONE]),
        Measure(
            name="an enclosed gate beyond `sh -c true`, checkout included",
            ours=added,
            peer="30 ms",
            theirs=0.03,
            target=AtMost(1),
        ),
    ]


def _waves(app: App, project: Project) -> list[Measure]:
    names = tuple(f"gate{number}" for number in range(GATES))
    contenders = {
        ONE: _judging(app, project, names[:1], SandboxLevel.NONE, f"sleep {SLEEP}"),
        WAVE: _judging(app, project, names, SandboxLevel.NONE, f"sleep {SLEEP}"),
    }
    found = interleave(contenders, COLD_ROUNDS)
    return [Measure(name=WAVE, ours=found[WAVE], peer=ONE, theirs=found[ONE], target=AtMost(1.25))]


def _cold(where: Path) -> list[Measure]:
    """Each as a whole process, in the same repository."""
    root = where / "repository"
    (root / ".pre-commit-config.yaml").write_text(HOOKS, encoding="utf-8")
    _run("git", "-C", str(root), "add", ".pre-commit-config.yaml")
    environment = os.environ | {
        "LOCKGATE_HOME": str(where / "cold"),
        "PRE_COMMIT_HOME": str(where / "pre-commit"),
    }

    def cold(*argv: str) -> Work:
        return clocked(
            lambda: subprocess.run(argv, cwd=root, env=environment, check=True, capture_output=True)
        )

    lockgate = str(Path(sys.executable).with_name("lockgate"))
    contenders = {COLD: cold(lockgate, "gate", "run"), SHELL: cold("sh", "-c", LOOP)}
    peer = _pre_commit()
    if peer:
        contenders[PRE_COMMIT] = cold(str(peer), "run", "--all-files")
    found = interleave(contenders, COLD_ROUNDS)
    measures = [Measure(name=COLD, ours=found[COLD], peer=SHELL, theirs=found[SHELL])]
    if peer:
        theirs = found[PRE_COMMIT]
        measures.append(
            Measure(
                name=COLD, ours=found[COLD], peer=PRE_COMMIT, theirs=theirs, target=AtMost(0.25)
            )
        )
    return measures


def _judging(
    app: App, project: Project, names: tuple[str, ...], level: SandboxLevel, command: str = "true"
) -> Work:
    """All of them once, over a home that is prepared."""
    pinned = app.configuration.rules_of(project)
    known = app.configuration.settings_of(project)
    place = ALONE if command == "true" else TOGETHER
    gates = tuple(CommandGate(name=it, place=place, command=command) for it in names)
    settings = replace(known, gates=gates, sandbox=replace(known.sandbox, level=level))
    rules = replace(pinned, sandboxed=level is SandboxLevel.AUTO)
    task = nobodys_task(project, settings, pinned.base_commit, rules)
    runner = gate_runner(app.home, app.workspaces, CommandGates(read_reports))
    return clocked(lambda: _judge(runner, Evaluation(project, task, (), settings)))


def _judge(runner: GateRunner, it: Evaluation) -> None:
    results = runner.results(it, lambda: False)
    assert all(isinstance(it, Passed) for it in results), results  # noqa: S101  or it says nothing
    assert len(results) == len(it.settings.gates)  # noqa: S101  as above


def _pre_commit() -> Path | None:
    """In an environment of its own, which stays; it is no dependency of ours."""
    place = BUILD / "pre-commit"
    program = place / "bin" / "pre-commit"
    if not program.exists():
        try:
            _run(sys.executable, "-m", "venv", str(place))
            _run(str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "pre-commit")
        except subprocess.CalledProcessError as error:
            say(f"  pre-commit cannot be installed: {error.stderr.decode().strip()[-200:]}")
            return None
    return program


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)


if __name__ == "__main__":
    main(bench)
