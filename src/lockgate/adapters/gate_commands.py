"""Runs a command gate in the sandbox: what it exits with decides, what it prints explains."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lockgate.adapters.run import Cut, Finished
from lockgate.adapters.run import run as run_plainly
from lockgate.adapters.sandbox import Box, Boxed, Mount, boxed, owner, run_boxed, trouble
from lockgate.core.agents import WORKSPACE
from lockgate.core.evaluation import Broken, Failed, Passed, Proof, SingleGateResult
from lockgate.core.findings import Finding, Priority
from lockgate.core.gates import CommandGate
from lockgate.core.settings import SandboxLevel
from lockgate.ports import GateRun

NOT_RUN = frozenset({126, 127})  # the shell's words for a command that it cannot start
TAIL = 4000
OUT = "/tmp/out"  # noqa: S108 - inside the sandbox, where it is the gate's own


@dataclass(frozen=True, slots=True)
class CommandGates:
    """The GateRuns port. Nothing that a gate writes is kept but what it prints."""

    def run(
        self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]
    ) -> SingleGateResult:
        enclosed = run.sandbox.level is SandboxLevel.AUTO
        why_not = trouble() if enclosed else None
        if why_not:
            return Broken(gate.name, why_not)
        begun = time.monotonic()
        if enclosed:
            finished = run_boxed(_boxed(gate, run), deadline=gate.timeout, cancelled=cancelled)
        else:
            finished = _bare(gate, run)
        seconds = time.monotonic() - begun
        return _result(gate, run, finished, seconds, "bubblewrap" if enclosed else "none")


def _boxed(gate: CommandGate, run: GateRun) -> Boxed:
    _give(run.checkout)
    box = Box(
        mounts=(
            Mount(source=run.base, target="/base.git"),
            Mount(source=run.checkout, target=WORKSPACE, writable=True),
        ),
        directory=WORKSPACE,
        env={"OUT": OUT},
        network=run.sandbox.network,
        read=run.sandbox.read,
        processes=run.sandbox.pids,
    )
    return boxed(box, ("/bin/sh", "-c", f"mkdir -p {OUT}; {gate.command}"))


def _bare(gate: CommandGate, run: GateRun) -> Finished:
    """Level none, which must be asked for: the command is held by nothing but its deadline."""
    path, home = os.environ.get("PATH", os.defpath), run.checkout.parent
    clean = ("env", "-i", f"PATH={path}", f"HOME={home}", f"OUT={home}", "LANG=C.UTF-8")
    argv = (*clean, "/bin/sh", "-c", gate.command)
    return run_plainly(argv, cwd=run.checkout, deadline=gate.timeout)


def _give(directory: Path) -> None:
    """The checkout is the gate's to write: it is thrown away afterwards."""
    uid, gid = owner()
    for where, names, files in os.walk(directory):
        for name in (".", *names, *files):
            os.chown(Path(where) / name, uid, gid, follow_symlinks=False)


def _result(
    gate: CommandGate, run: GateRun, done: Finished, seconds: float, level: str
) -> SingleGateResult:
    if done.cut is Cut.BOX:
        return Broken(gate.name, f"the sandbox failed: {_tail(done.err)}")
    if done.cut is Cut.CANCELLED:
        return Broken(gate.name, "it was called off")
    if done.cut is Cut.DEADLINE:
        return Failed(gate.name, (_finding(f"ended after {gate.timeout} seconds", done),))
    if done.code in NOT_RUN:
        return Broken(gate.name, f"its command cannot be started: {_tail(done.err)}")
    if done.code != 0:
        return Failed(gate.name, (_finding(f"`{gate.command}` exited {done.code}", done),))
    proof = Proof(
        ran=(gate.command,),
        commit=run.commit,
        tree=run.tree,
        config_hash=run.config_hash,
        sandbox=level,
        seconds=seconds,
        exit_code=done.code,
    )
    return Passed(gate.name, proof)


def _finding(how: str, done: Finished) -> Finding:
    said = _tail(f"{done.out}\n{done.err}")
    return Finding(Priority.P1_MAJOR, f"{how}: {said}" if said else how)


def _tail(text: str) -> str:
    return text.strip()[-TAIL:]
