"""Carries out what an agent may ask of Lockgate, with the session's token and no other."""

import os
import socket
import subprocess
import threading
from collections.abc import Mapping

from lockgate.adapters.sessions.runner.command_socket import (
    Answer,
    Line,
    Request,
    ask,
    both_ways,
    take,
)

ALLOWED = (
    ("task", "update"),
    ("task", "complete"),
    ("task", "show"),
    ("task", "why"),
    ("checkpoint",),
    ("step",),
    ("review", "submit"),
    ("mcp",),  # the same commands as tools, and no more
)
REVIEW = ("review", "submit")  # the one of these that names a file; the session's own side reads it
NOT_READ = (
    "lockgate: the review was not handed in: only - is taken as its file here\n"
    "  lockgate review submit --file - < FILE\n"
)
STEP = ("step",)  # takes as long as its tests do: in a process of its own, it holds up nobody
MCP = ("mcp",)  # a connection that stays, to a server that knows the session by its token
SERVER = "lockgate.faces.mcp.child"
PATIENCE, STEP_PATIENCE = 3600.0, 4 * 3600.0
ANSWERS = 600.0  # seconds for the orchestrator, which may be stopped
TAKES_WITHIN = 8.0  # seconds for an orchestrator to take a connection
OURS = ("LOCKGATE_SOCKET", "LOCKGATE_SESSION")  # an agent's, not for a command of ours


class Relay:
    """Asks the orchestrator; a step, and all where there is none, it runs itself."""

    def __init__(self, *, home: str, token: str, python: str) -> None:
        self._home, self._token, self._python = home, token, python
        self.starting = threading.Lock()  # held while a helper is started but not yet in the list
        self.helpers: set[int] = set()

    def answer(self, request: Request, line: Line) -> Answer | None:
        """What the agent sent as its token and directory is not looked at."""
        if not any(request.argv[: len(it)] == it for it in ALLOWED):
            return Answer(1, err=_refused(request.argv))
        if request.argv[:2] == REVIEW and _names_a_file(request.argv):
            return Answer(1, err=NOT_READ)
        ours = Request(token=self._token, cwd=self._home, stdin=request.stdin, argv=request.argv)
        if request.argv == MCP:
            return self._connect(ours, line)
        if request.argv[:1] == STEP:
            return self._run(ours, STEP_PATIENCE)
        told = ask(self._door, ours, patience=ANSWERS)
        return told or self._run(ours, PATIENCE)

    @property
    def _door(self) -> str:
        return os.path.join(self._home, "door.sock")  # noqa: PTH118 - the runner has no pathlib

    def _connect(self, request: Request, line: Line) -> Answer | None:
        """Between the agent and the orchestrator, or a server of our own where there is none."""
        there = take(self._door, request, patience=TAKES_WITHIN)
        if isinstance(there, Answer):
            return there
        both_ways(line.take(), there or self._serve())
        return None

    def _serve(self) -> socket.socket:
        """A server that ends with the connection."""
        here, there = socket.socketpair()
        with there, self.starting:
            helper = subprocess.Popen(  # noqa: S603 - ours
                [self._python, "-P", "-m", SERVER],
                cwd=self._home,
                env=self._environment(os.environ),
                stdin=there.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self.helpers.add(helper.pid)
        threading.Thread(target=self._reap, args=(helper,), daemon=True).start()
        return here

    def _reap(self, helper: "subprocess.Popen[bytes]") -> None:
        helper.wait()
        self.helpers.discard(helper.pid)

    def _run(self, request: Request, patience: float) -> Answer:
        with self.starting:
            helper = subprocess.Popen(  # noqa: S603 - ours, with an argument list that was looked at
                [self._python, "-P", "-m", "lockgate", *request.argv],
                cwd=self._home,
                env=self._environment(os.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="surrogateescape",
                start_new_session=True,
            )
            self.helpers.add(helper.pid)
        try:
            out, err = helper.communicate(request.stdin, timeout=patience)
        except subprocess.TimeoutExpired:
            helper.kill()
            out, err = helper.communicate()
        finally:
            self.helpers.discard(helper.pid)
        return Answer(helper.returncode if helper.returncode >= 0 else 1, out, err)

    def _environment(self, ours: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in ours.items() if name not in OURS}
        return kept | {
            "LOCKGATE_HOME": self._home,
            "LOCKGATE_TOKEN": self._token,
            "LOCKGATE_NO_ORCHESTRATOR": "1",
        }


def _names_a_file(argv: tuple[str, ...]) -> bool:
    """Whether a --file is other than `-`: it would lie on our side, not on the agent's."""
    return any(
        (word == "--file" and argv[at + 1 : at + 2] != ("-",))
        or (word.startswith("--file=") and word != "--file=-")
        for at, word in enumerate(argv)
    )


def _refused(argv: tuple[str, ...]) -> str:
    allowed = ", ".join(" ".join(it) for it in ALLOWED)
    return (
        f"lockgate: {' '.join(argv[:2])!r} was not done: a session may not ask for it\n"
        f"what it may ask for: {allowed}\n"
    )
