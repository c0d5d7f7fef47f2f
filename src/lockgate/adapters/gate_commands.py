"""Runs a command gate in the sandbox: what it exits with decides, what it prints explains.

The command is run by `sh -c` exactly as it is written. Of a pipeline the last command's exit is
the whole's, as in any shell; who wants another says so in the command (`set -o pipefail` in bash).
"""

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.sandbox import (
    Mount,
    Tried,
    Try,
    enclosed,
    owner,
    trouble,
)
from lockgate.adapters.sandbox.attempt import bare
from lockgate.core.config.settings import SandboxLevel, SandboxSettings
from lockgate.core.model.gates import CommandGate, Report
from lockgate.core.model.results import ReportRead, Unreadable
from lockgate.core.model.retry import EXIT_DOCKER_DAEMON_UNAVAILABLE as NOT_ENCLOSED
from lockgate.errors import Unavailable
from lockgate.ports import Attempt, Cut, GateRun

SIGNALS = {137: "SIGKILL", 143: "SIGTERM"}  # or a program's own exit
NEVER_RAN = frozenset({Cut.BOX, Cut.SERVICE})
TAIL = 4000
BESIDE = "a service failed, so no test is to blame; see [[services]] in .lockgate/config.toml"


class CommandGates(Struct, frozen=True):
    """The GateRuns port. Nothing that a gate writes is kept but what it prints and reports.

    No gate sees the home, whatever else it is shown.
    """

    reader: Callable[[Path | None, str, Report | None], ReportRead | Unreadable]
    home: Path | None = None

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:
        """One try, which finds the checkout as the one before found it."""
        sandboxed = run.sandbox.level is SandboxLevel.AUTO
        why_not = trouble() if sandboxed else None
        if why_not:
            return _never_ran(why_not)
        it = Try(
            command=gate.command,
            checkout=run.checkout,
            mounts=(Mount(source=run.base, target="/base.git"),),
            sandbox=run.sandbox,
            services=run.services,
            data=run.data,
            deadline=gate.timeout,
            hidden=(str(self.home),) if self.home else (),
            env=run.span.environment,
        )
        try:
            if sandboxed:
                _give(run.checkout)
                tried = enclosed(it, cancelled)
            else:
                tried = bare(it, run.upkeep, cancelled, alone=run.alone)
        except OSError as error:
            what, fix = (
                f"gate {gate.name} was not run",
                "see that the disk has room, then try again",
            )
            raise Unavailable(what, why=str(error), fix=fix) from error
        return _attempt(gate, run.sandbox, tried)

    def read(self, attempt: Attempt, wanted: Report | None) -> ReportRead | Unreadable:
        left = attempt.report_dir
        try:
            return self.reader(left, f"{attempt.out}\n{attempt.err}", wanted)
        finally:
            if left is not None:
                shutil.rmtree(left, ignore_errors=True)


def _give(directory: Path) -> None:
    """Root's own files could not be changed by what root becomes; the top comes last, as a mark."""
    uid, gid = owner()
    if directory.stat().st_uid == uid:
        return
    for where, names, files in os.walk(directory):
        for name in (*names, *files):
            os.chown(Path(where) / name, uid, gid, follow_symlinks=False)
    os.chown(directory, uid, gid)


def _never_ran(why: str) -> Attempt:
    return Attempt(
        exit_code=NOT_ENCLOSED,
        cut=Cut.BOX,
        why=why,
        out="",
        err="",
        report_dir=None,
        seconds=0.0,
        level="none",
    )


def _attempt(gate: CommandGate, sandbox: SandboxSettings, tried: Tried) -> Attempt:
    done = tried.finished
    ended = NOT_ENCLOSED if done.cut in NEVER_RAN else None
    return Attempt(
        exit_code=done.code if done.cut is None else ended,
        cut=done.cut,
        why=_why(done.cut, gate, sandbox, tried),
        out=done.out,
        err=done.err,
        report_dir=tried.reports,
        seconds=tried.seconds,
        level=tried.level,
    )


def _why(cut: Cut | None, gate: CommandGate, sandbox: SandboxSettings, tried: Tried) -> str:
    signal = SIGNALS.get(tried.finished.code)
    words = {
        None: f"perhaps ended by {signal}" if signal else "",
        Cut.DEADLINE: f"ended after {gate.timeout} seconds",
        Cut.CANCELLED: "it was called off",
        Cut.BOX: f"the sandbox failed: {_tail(tried.finished.err) or _ended(tried.finished.code)}",
        Cut.SERVICE: f"{BESIDE}: {_tail(tried.said)}",
        Cut.MEMORY: f"it used up its memory ([sandbox] memory_mb = {sandbox.memory_mb})",
        Cut.SCRATCH: f"it used up its scratch ([sandbox] scratch_mb = {sandbox.scratch_mb})",
        Cut.PIDS: f"it used up its processes ([sandbox] pids = {sandbox.pids})",
    }
    return words[cut]


def _ended(code: int) -> str:
    """How the sandbox's own program ended, where it said nothing of it."""
    how = f"was ended by {_signal(-code)}" if code < 0 else f"exited {code}"
    return f"it {how} before the command's exit was known, and printed nothing"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _tail(text: str) -> str:
    return text.strip()[-TAIL:]
