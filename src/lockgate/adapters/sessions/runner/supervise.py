"""A session's program: started, followed but never blocked, and ended with all it started."""

import contextlib
import ctypes
import fcntl
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Sequence

from lockgate.adapters.sandbox.proof import Proof
from lockgate.adapters.sandbox.uplink import Uplink
from lockgate.adapters.sessions.runner import proc
from lockgate.adapters.sessions.runner.files import Log, Program, Spec

GRACE = 5.0  # seconds between asking a program to end and killing it
CHUNK = 1 << 16
LOWEST = 20  # of the descriptors that are handed over
BARE = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}  # bwrap's is seen by what it encloses
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_LIBC = ctypes.CDLL(None, use_errno=True)


class Child:
    """The running program. Made and followed by the main thread, with which bwrap dies."""

    def __init__(
        self,
        spec: Spec,
        logs: tuple[Log, Log],
        spared: Callable[[], Collection[int]],
        group: str = "",
    ) -> None:
        """`spared` are children of ours that are not the program's; `group` is its own one."""
        self._group = group
        self.last_output = time.monotonic()
        self._logs, self._spared = logs, spared
        self._selector = selectors.DefaultSelector()
        self._status, self._left = b"", memoryview((spec["stdin"] or "").encode())
        self._boxed = bool(spec["run"]["program"])
        self._proof = Proof(tuple(spec["run"]["separate"]))
        self._way_out = spec["run"]["uplink"]
        self._uplink: Uplink | None = None
        _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._handed = Handed(spec["run"])
        try:
            self._process = _started(spec, self._handed.argv, self._handed.given)
        except BaseException:
            self._handed.close()
            raise
        finally:
            self._handed.let_go()
        self._register()

    def pump(self, seconds: float) -> bool:
        """Pass on what there is, waiting no longer than that; whether the program still runs."""
        for key, _ in self._selector.select(seconds):
            if callable(key.data):
                key.data(key)
        if not self._boxed:
            self._reap()
        return self._process.poll() is None

    def wake_by(self, descriptor: int) -> None:
        """Return from a wait when this becomes readable."""
        self._selector.register(descriptor, selectors.EVENT_READ, _emptied)

    def ask_to_end(self) -> bool:
        """Whether there was somebody to ask: what starts just now can be asked a little later."""
        first = self.first_inside()
        asked = proc.children_of(first) if first else (self._process.pid,)
        proc.send(asked, signal.SIGTERM)
        return bool(asked)

    def kill(self) -> None:
        """Killing a namespace's first process kills all of it before bwrap returns."""
        first = self.first_inside()
        if first is not None and self._process.poll() is None:
            proc.send((first,), signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        proc.kill_all(lambda: [it for it in proc.children_of(os.getpid()) if it == first])

    def sweep(self, mark: str, grace: float) -> None:
        """End what it left behind, and take the last of the output."""
        if not self._boxed:
            proc.send(self._left_behind(mark), signal.SIGTERM)
            until = time.monotonic() + grace
            while self._left_behind(mark) and time.monotonic() < until:
                self.pump(0.05)
            proc.kill_all(lambda: self._left_behind(mark))
        until = time.monotonic() + 2.0
        while self._open_outputs() and time.monotonic() < until:
            self.pump(0.05)

    def unproved(self) -> str:
        """Why it is no sandbox, though it told how it ended; empty where it is, or told nothing."""
        if self._uplink is not None and not self._uplink.works:
            return "the session was not started: pasta could not connect its sandbox to the network"
        told = self._proof.answered or b'"exit-code"' in self._status
        if not self._boxed or not told or self._proof.holds:
            return ""
        return f"the sandbox was not proved: {self._proof.fault}"

    def code(self) -> int | None:
        """None where a signal ended it; 125 where the sandbox could not be made, or is none."""
        code = self._process.returncode
        if self.unproved():
            return 125
        if self._boxed and b'"exit-code"' not in self._status:
            return None if code < 0 else 125
        if code < 0 or (self._boxed and code > 128):  # noqa: PLR2004 - bwrap's word for a signal
            return None
        return code

    def close(self) -> None:
        self._selector.close()
        self._handed.close()
        if self._uplink is not None:
            self._uplink.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _register(self) -> None:
        process = self._process
        for stream, log in zip((process.stdout, process.stderr), self._logs, strict=True):
            if stream is not None:
                self._selector.register(stream, selectors.EVENT_READ, self._writer(log))
        self._selector.register(self._handed.told, selectors.EVENT_READ, self._note)
        if self._boxed:
            self._selector.register(self._handed.heard, selectors.EVENT_READ, self._hear)
        else:
            self._give_input()

    def _give_input(self) -> None:
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)
            self._selector.register(self._process.stdin, selectors.EVENT_WRITE, self._feed)

    def _writer(self, log: Log) -> Callable[[selectors.SelectorKey], None]:
        def write(key: selectors.SelectorKey) -> None:
            chunk = os.read(key.fd, CHUNK)
            if chunk:
                self.last_output = time.monotonic()
                log.write(chunk)
            else:
                self._selector.unregister(key.fileobj)

        return write

    def _feed(self, key: selectors.SelectorKey) -> None:
        try:
            self._left = self._left[os.write(key.fd, self._left[:CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it does not want the rest
            self._left = memoryview(b"")
        if not self._left and self._process.stdin is not None:
            self._selector.unregister(key.fileobj)
            self._process.stdin.close()

    def _note(self, key: selectors.SelectorKey) -> None:
        chunk = os.read(key.fd, CHUNK)
        known = self.first_inside()
        self._status += chunk
        if not chunk:
            self._selector.unregister(key.fileobj)
        first = self.first_inside()
        if known is None and first is not None:
            self._begin(first)

    def _begin(self, first: int) -> None:
        """Where the box gets no network, what waits in it is told nothing and ends."""
        if self._way_out:
            self._uplink = Uplink(self._way_out, first)
            if not self._uplink.works:
                self._selector.unregister(self._handed.heard)
                self._handed.hang_up()
                return
        self._handed.say(self._proof.word)

    def _hear(self, key: selectors.SelectorKey) -> None:
        """The program starts, and gets its input, once the box has shown that it is one."""
        chunk = os.read(key.fd, CHUNK)
        self._proof.hear(chunk, self.first_inside() or 0)
        if self._proof.holds:
            self._enter_group()
            self._handed.say(b"go\n")
            self._give_input()
        if self._proof.answered or not chunk:
            self._selector.unregister(key.fileobj)
            self._handed.hang_up()

    def _enter_group(self) -> None:
        """All that runs by now, which waits; the program is started by one of them."""
        first = self.first_inside()
        if not self._group or first is None:
            return
        for pid in (self._process.pid, first, *proc.children_of(first)):
            with open(f"{self._group}/cgroup.procs", "w", encoding="ascii") as file:  # noqa: PTH123 - no pathlib
                file.write(str(pid))

    def first_inside(self) -> int | None:
        """The pid, as we see it, of the box's first process: `{ "child-pid": 42, … }`."""
        digits = self._status.partition(b'"child-pid":')[2].split(b",")[0].strip(b" }\n")
        return int(digits) if digits.isdigit() else None

    def _open_outputs(self) -> bool:
        streams = (self._process.stdout, self._process.stderr)
        return any(key.fileobj in streams for key in self._selector.get_map().values())

    def _left_behind(self, mark: str) -> tuple[int, ...]:
        spared = {os.getpid(), *self._spared()}
        spared |= {it for helper in self._spared() for it in proc.descendants_of(helper)}
        found = {*proc.descendants_of(os.getpid()), *proc.marked(mark)} - spared
        self._reap()
        return tuple(found)

    def _reap(self) -> None:
        """Those that came to us when their own parents ended."""
        known = {self._process.pid, *self._spared()}
        while (pid := _dead_child()) and pid not in known:
            os.waitpid(pid, os.WNOHANG)


def _dead_child() -> int | None:
    with contextlib.suppress(ChildProcessError):
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found.si_pid if found else None
    return None


class Handed:
    """The command line and the descriptors it names; of each pipe the other end is ours.

    `told` is what bwrap tells, `heard` what the box answers. All lie above those that the box uses.
    """

    def __init__(self, program: Program) -> None:
        self.told, telling = _pipe()
        self.heard, answering = _pipe()
        asking, self._asked = _pipe()
        self.argv = program["argv"]
        self.given: tuple[int, ...] = ()
        self._theirs, self._open = (
            [telling, answering, asking],
            {self.told, self.heard, self._asked},
        )
        if program["program"]:
            options = _above(os.memfd_create("options"))
            self._theirs.append(options)
            os.write(options, b"".join(os.fsencode(it) + b"\0" for it in program["options"]))
            os.lseek(options, 0, os.SEEK_SET)
            named = ("--args", str(options), "--json-status-fd", str(telling))
            proof = ("--proof", str(asking), str(answering))
            self.argv = [*program["program"], *named, *proof, "--", *program["argv"]]
            self.given = (options, telling, asking, answering)

    def let_go(self) -> None:
        """Of what the program has by now."""
        while self._theirs:
            os.close(self._theirs.pop())

    def say(self, word: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._asked, word)

    def hang_up(self) -> None:
        """Nothing that runs inside can say more, or hear more, by these pipes."""
        for descriptor in (self.heard, self._asked):
            self._close(descriptor)

    def close(self) -> None:
        for descriptor in tuple(self._open):
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.remove(descriptor)
            os.close(descriptor)


def _pipe() -> tuple[int, int]:
    reading, writing = os.pipe()
    return _above(reading), _above(writing)


def _above(descriptor: int) -> int:
    """The same by a higher number: the launcher takes low ones for the box."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, LOWEST)
    os.close(descriptor)
    return moved


def _started(
    spec: Spec, argv: Sequence[str], descriptors: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    enclosed, at_terminal = bool(spec["run"]["program"]), spec["interactive"]
    piped = None if at_terminal else subprocess.PIPE
    idle = None if at_terminal else subprocess.DEVNULL
    return subprocess.Popen(  # noqa: S603 - the whole purpose; an argument list, no shell
        argv,
        cwd="/" if enclosed else spec["run"]["directory"],
        env=BARE if enclosed else spec["run"]["env"],
        stdin=idle if spec["stdin"] is None else subprocess.PIPE,
        stdout=piped,
        stderr=piped,
        bufsize=0,
        pass_fds=descriptors,
        start_new_session=not at_terminal,
        preexec_fn=None if enclosed else _die_with_parent,  # noqa: PLW1509 - no thread runs yet
    )


def _die_with_parent() -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _emptied(key: selectors.SelectorKey) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(key.fd, CHUNK)
