"""What running gates costs besides what the gates do: warm, cold, enclosed, and side by side."""

import os
import subprocess
import sys
import time
from pathlib import Path

from msgspec.structs import replace

from bench.harness import BUILD, AtMost, Measure, Medians, Work, clocked, interleave, main, say
from bench.home import WHO, make_home, make_trusted
from lockgate.adapters.gate_commands import CommandGates
from lockgate.adapters.reports import read_reports
from lockgate.adapters.sandbox import trouble
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.bootstrap import App
from lockgate.bootstrap.gates import gate_runner
from lockgate.core.config.settings import SandboxLevel, Settings
from lockgate.core.model.gates import CommandGate, Placement, Where
from lockgate.core.model.results import Passed
from lockgate.ports import Candidate, Project
from lockgate.services.gates.commit_check import of_head
from lockgate.services.gates.runner import Evaluation, GateRunner

GATES = 10
ROUNDS = 30
COLD_ROUNDS = 30
NO_ORCHESTRATOR = "LOCKGATE_NO_ORCHESTRATOR"
WAVE_ROUNDS = 8
SLOWEST = 1.25  # times one of them: the time of the slowest, and what a busy machine adds
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
PRE_COMMIT = "pre-commit run, ten hooks"
SHELL = "a shell loop"
NONE, AUTO = f"{GATES} gates, warm, no sandbox", f"{GATES} gates, warm, enclosed"
WHOLE = f"{GATES} gates with their checkout, warm, no sandbox"
CHECKOUT, CLONE = "the checkout of an evaluation", "git clone --shared, rm -rf"
CLONING = 'git clone -q --shared "$1" "$2" && rm -rf "$2"'
SERVED, ALONE_COLD = "gate run, an orchestrator up", "gate run, no orchestrator"
NEW = "the same, of a new commit"
LIST, PYTHON = "gate list, no orchestrator", "python -c pass"
WAVE, ONE = "a wave of {} gates that sleep {} s, {}", "one of them"


class Prepared(GitWorkspaces):
    """With the checkout of an evaluation there already, and staying there."""

    _tree = ""

    def checkout(self, it: Candidate, directory: Path) -> str:
        if not directory.is_dir():
            self._tree = super().checkout(it, directory)
        return self._tree

    def set_up(
        self, it: Candidate, settings: Settings, directory: Path, *, own: bool = False
    ) -> None:
        """There is nothing to set up."""

    def discard(self, directory: Path) -> None:
        """What lies beside it is counted with the checkout, which it is removed with."""


def bench(where: Path) -> list[Measure]:
    say("\ngates")
    app, project = make_home(where, CONFIG)
    try:
        return [*_warm(where, app, project), *_waves(app, project), *_cold(where)]
    finally:
        app.store.close()


def _warm(where: Path, app: App, project: Project) -> list[Measure]:
    enclosed = {} if trouble() else {AUTO: _judging(app, project, SandboxLevel.AUTO, kept=True)}
    cloned = (str(where / "repository"), str(where / "clone"))
    contenders: dict[str, Work] = {
        SHELL: clocked(lambda: _run("sh", "-c", LOOP)),
        NONE: _judging(app, project, SandboxLevel.NONE, kept=True),
        WHOLE: _judging(app, project, SandboxLevel.NONE),
        CLONE: clocked(lambda: _run("sh", "-c", CLONING, "cloning", *cloned)),
        **enclosed,
    }
    found = interleave(contenders, ROUNDS)
    shell, none, whole = found[SHELL], found[NONE], found[WHOLE]
    measures = [
        Measure(name=NONE, ours=none, peer=SHELL, theirs=shell, target=AtMost(2)),
        Measure(name=WHOLE, ours=whole, peer=SHELL, theirs=shell),
        Measure(name=CHECKOUT, ours=whole - none, peer=CLONE, theirs=found[CLONE]),
    ]
    if AUTO in found:
        added = (found[AUTO] - none) / GATES
        name, target = "what the sandbox adds to a gate", AtMost(1)
        measures.append(Measure(name=name, ours=added, peer="30 ms", theirs=0.03, target=target))
    return measures


def _waves(app: App, project: Project) -> list[Measure]:
    levels = [SandboxLevel.NONE, *([] if trouble() else [SandboxLevel.AUTO])]
    return [_wave(app, project, level) for level in levels]


def _wave(app: App, project: Project, level: SandboxLevel) -> Measure:
    asleep = f"sleep {SLEEP}"
    contenders = {
        ONE: _judging(app, project, level, command=asleep, gates=1),
        WAVE: _judging(app, project, level, command=asleep),
    }
    found = interleave(contenders, WAVE_ROUNDS)
    said = "no sandbox" if level is SandboxLevel.NONE else "enclosed"
    name = WAVE.format(GATES, SLEEP, said)
    return Measure(name=name, ours=found[WAVE], peer=ONE, theirs=found[ONE], target=AtMost(SLOWEST))


def _cold(where: Path) -> list[Measure]:
    """Each as a whole process, in the same repository; only an orchestrator is there before."""
    root = where / "repository"
    _run("git", "-C", str(root), "checkout", "--quiet", "-b", "feature")
    (root / ".pre-commit-config.yaml").write_text(HOOKS, encoding="utf-8")
    _run("git", "-C", str(root), "add", ".pre-commit-config.yaml")
    environment = {
        **{name: value for name, value in os.environ.items() if name != NO_ORCHESTRATOR},
        "LOCKGATE_HOME": str(where / "cold"),
        "PRE_COMMIT_HOME": str(where / "pre-commit"),
    }

    make_trusted(environment, root)

    def cold(*argv: str, **more: str) -> Work:
        environ = environment | more
        return clocked(
            lambda: subprocess.run(argv, cwd=root, env=environ, check=True, capture_output=True)
        )

    lockgate = str(Path(sys.executable).with_name("lockgate"))
    served = cold(lockgate, "gate", "run")

    def of_a_new_commit() -> float:
        (root / "a file").write_text(str(time.monotonic_ns()), encoding="utf-8")
        _run("git", "-C", str(root), "add", "a file")
        _run("git", "-C", str(root), *WHO, "commit", "--quiet", "--message", "another")
        return served()

    contenders = {
        SERVED: served,
        NEW: of_a_new_commit,
        ALONE_COLD: cold(lockgate, "gate", "run", **{NO_ORCHESTRATOR: "1"}),
        LIST: cold(lockgate, "gate", "list", **{NO_ORCHESTRATOR: "1"}),
        PYTHON: cold(sys.executable, "-c", "pass"),
    }
    peer = _pre_commit()
    if peer:
        contenders[PRE_COMMIT] = cold(str(peer), "run", "--all-files")
    subprocess.run([lockgate, "up", "--detach"], env=environment, check=True, capture_output=True)
    try:
        found = interleave(contenders, COLD_ROUNDS)
    finally:
        subprocess.run([lockgate, "down"], env=environment, check=True, capture_output=True)
    return _cold_lines(found)


def _cold_lines(found: Medians) -> list[Measure]:
    asked: list[tuple[str, str, AtMost | None]] = [(SERVED, PRE_COMMIT, AtMost(0.25))]
    asked += [(it, PRE_COMMIT, None) for it in (NEW, ALONE_COLD)]
    asked += [(it, PYTHON, None) for it in (SERVED, ALONE_COLD, LIST)]
    return [
        Measure(name=ours, ours=found[ours], peer=peer, theirs=found[peer], target=target)
        for ours, peer, target in asked
        if peer in found
    ]


def _judging(
    app: App,
    project: Project,
    level: SandboxLevel,
    *,
    command: str = "true",
    gates: int = GATES,
    kept: bool = False,
) -> Work:
    """All of them once, over a home that is prepared; where it is kept, with the checkout too."""
    pinned = app.configuration.rules_of(project)
    known = app.configuration.settings_of(project)
    place = ALONE if command == "true" else TOGETHER
    listed = tuple(CommandGate(name=f"g{it}", place=place, command=command) for it in range(gates))
    settings = replace(known, gates=listed, sandbox=replace(known.sandbox, level=level))
    rules = replace(pinned, sandboxed=level is SandboxLevel.AUTO)
    candidate = Candidate(
        project=project,
        commit=pinned.base_commit,
        rules=rules,
        name=f"{level}-kept" if kept else f"{level}",
    )
    workspaces = Prepared(app.home) if kept else app.workspaces
    runner = gate_runner(app.home, workspaces, CommandGates(read_reports))
    return clocked(lambda: _judge(runner, of_head(candidate, "HEAD", (), settings)))


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
