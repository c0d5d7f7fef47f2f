"""`lockgate mcp`: MCP between a client's streams and the orchestrator, a message a line.

The server is elsewhere: this only copies, so that it starts at once. It keeps what the client said
first and every request without an answer, so that the client goes on where the orchestrator ends
and another one comes. It runs in sandboxes too and imports the standard library only.
"""

import _socket
import json
import os
import select
import sys
import time
from collections.abc import Callable
from typing import cast

from lockgate.faces import client

ASKS = ["mcp"]
LONGEST = 32 << 20  # bytes of one message
CHUNK = 1 << 16
PIPE = 4096  # bytes that a pipe takes at once when it takes any
FULL = 64 << 20  # bytes that wait for the other end before no more are read
STARTS_WITHIN = 30.0  # seconds for an orchestrator to come up
LINGERS = 10.0  # seconds that answers may take once the client has said all
LOOKS_EVERY = 1.0  # seconds between two looks for another orchestrator
OURS = "lockgate:"  # how the ids of requests begin that are said again for the client
LISTEN, LISTENING = "subscriptions/listen", "notifications/subscriptions/acknowledged"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
# Tools that change nothing: a call that got no answer is made again.
READING = ("list_tasks", "get_task", "why", "list_findings", "events", "get_my_task")
LOST = {
    "what": "it is not known whether the call was carried out",
    "why": "the orchestrator ended before it answered",
    "fix": "look at the task (get_task, or get_my_task), then call again where it was not",
}

Message = dict[str, object]


class Client:
    """What the client has said that another server must hear too."""

    def __init__(self) -> None:
        self.first: list[Message] = []  # `initialize`, and that it is done
        self.subscribed: dict[str, Message] = {}  # by what to
        self.waiting: dict[str, Message] = {}  # requests without an answer, by id
        self._listening = set[str]()  # those of them that the client knows to be heard

    def says(self, it: Message) -> None:
        method, params = it.get("method"), inner(it, "params")
        if "id" in it and method is not None:
            self.waiting[json.dumps(it["id"])] = it
        if method in {"initialize", "notifications/initialized"}:
            self.first = [it] if method == "initialize" else [*self.first[:1], it]
        uri = str(params.get("uri", ""))
        if method == "resources/subscribe":
            self.subscribed[uri] = it
        elif method == "resources/unsubscribe":
            self.subscribed.pop(uri, None)
        elif method == "notifications/cancelled":
            self.waiting.pop(json.dumps(params.get("requestId")), None)

    def hears(self, it: Message) -> bool:
        """Whether it is for the client: no answer to what was said again for it."""
        if "method" in it or "id" not in it:
            return not self._known(it)
        self.waiting.pop(json.dumps(it["id"]), None)
        self._listening.discard(json.dumps(it["id"]))
        return not str(it["id"]).startswith(OURS)

    def again(self) -> list[Message]:
        """All that another server must hear before the client goes on."""
        begun = json.dumps(self.first[0]["id"]) not in self.waiting if self.first else False
        first = [_renamed(it, n) for n, it in enumerate(self.first)] if begun else []
        said = [_renamed(it, 10 + n) for n, it in enumerate(self.subscribed.values())]
        return [*first, *said, *self.waiting.values()]

    def changed(self) -> list[Message]:
        """What may have changed meanwhile, so that the client reads it again."""
        told = [_updated(uri, {}) for uri in self.subscribed]
        for it in self.waiting.values():
            uris = _listened(it)
            told += [_updated(uri, {"_meta": {SUBSCRIPTION: it["id"]}}) for uri in uris]
        return told

    def give_up(self, why: str | None = None) -> list[Message]:
        """Answers to what cannot be asked again; to all that waits, where a reason is given."""
        given_up = [it for it in self.waiting.values() if why or not _repeats(it)]
        for it in given_up:
            del self.waiting[json.dumps(it["id"])]
        return [lost(it, why) for it in given_up]

    def _known(self, it: Message) -> bool:
        """Whether it says again that a subscription was heard."""
        if it.get("method") != LISTENING:
            return False
        key = json.dumps(inner(inner(it, "params"), "_meta").get(SUBSCRIPTION))
        known = key in self._listening
        self._listening.add(key)
        return known


def _renamed(it: Message, number: int) -> Message:
    return it | {"id": f"{OURS}{number}"} if "id" in it else it


def _listened(it: Message) -> list[str]:
    """What a request to listen names."""
    wanted = inner(inner(it, "params"), "notifications")
    uris = wanted.get("resourceSubscriptions")
    return [str(uri) for uri in cast("list[object]", uris)] if isinstance(uris, list) else []


def _updated(uri: str, more: Message) -> Message:
    params = {"uri": uri, **more}
    return {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}


def _repeats(it: Message) -> bool:
    name = inner(it, "params").get("name")
    return it.get("method") != "tools/call" or name in READING


def inner(it: Message, name: str) -> Message:
    """The object of that name; empty where there is none."""
    found = it.get(name)
    return cast("Message", found) if isinstance(found, dict) else {}


def lost(it: Message, why: str | None) -> Message:
    said: Message = {"jsonrpc": "2.0", "id": it["id"]}
    if it.get("method") != "tools/call":
        return said | {"error": {"code": -32603, "message": why or LOST["why"]}}
    told = LOST | ({"why": why} if why else {})
    result = {
        "content": [{"type": "text", "text": json.dumps(told)}],
        "structuredContent": told,
        "isError": True,
        "resultType": "complete",
    }
    return said | {"result": result}


class Lines:
    """Bytes as they come, and the whole lines in them; None for one that is too long."""

    def __init__(self) -> None:
        self._rest, self._skips = bytearray(), False

    def of(self, chunk: bytes) -> list[bytes | None]:
        *ends, rest = chunk.split(b"\n")
        lines: list[bytes | None] = []
        for end in ends:
            if not self._skips:
                lines.append(bytes(self._rest) + end)
            self._rest.clear()
            self._skips = False
        if not self._skips:
            self._rest += rest
        if len(self._rest) > LONGEST:
            self._rest.clear()
            self._skips = True
            lines.append(None)
        return lines


class Pipe:
    """Copies until the client has gone. `start` starts an orchestrator where none runs."""

    def __init__(self, path: str, start: Callable[[], None] | None) -> None:
        self._path, self._start = path, start
        self._client = Client()
        self._socket: _socket.socket | None = None
        self._said, self._heard = Lines(), Lines()
        self._out, self._up = bytearray(), bytearray()
        self._looks, self._until = 0.0, 0.0  # when to look for a server, when to end

    def run(self) -> int:
        try:
            self._connect()
            while not self._over():
                self._turn()
        except _Refused as why:
            for it in self._client.give_up(str(why)):
                self._print(it)
            self._flush()
            os.write(2, f"{why}\n".encode())
            return 1
        except BrokenPipeError:
            return 0  # the client has gone
        return 0

    def _turn(self) -> None:
        waiting = select.poll()
        if not self._until and len(self._up) < FULL:
            waiting.register(0, select.POLLIN)
        if self._out:
            waiting.register(1, select.POLLOUT)
        if self._socket is not None:
            full = 0 if len(self._out) >= FULL else select.POLLIN
            waiting.register(self._socket, full | (select.POLLOUT if self._up else 0))
        found = dict(waiting.poll(self._pause()))
        if 1 in found:
            del self._out[: os.write(1, self._out[:PIPE])]
        if 0 in found:
            self._listen()
        if self._socket is not None and self._socket.fileno() in found:
            self._exchange(found[self._socket.fileno()])
        elif self._socket is None and time.monotonic() >= self._looks:
            self._again()

    def _pause(self) -> float | None:
        """Milliseconds until there is something to do by itself."""
        if self._socket is not None and not self._until:
            return None
        first = min(it for it in (self._looks, self._until) if it)
        return max(first - time.monotonic(), 0.0) * 1000 + 1

    def _over(self) -> bool:
        if not self._until or self._out:
            return False
        asked = [it for it in self._client.waiting.values() if it.get("method") != LISTEN]
        return not asked or time.monotonic() >= self._until

    # From the client.

    def _listen(self) -> None:
        chunk = os.read(0, CHUNK)
        if not chunk:
            self._until = time.monotonic() + LINGERS
        for line in self._said.of(chunk):
            message = parsed(line)
            if message is not None:
                self._client.says(message)
                self._up += b"" if self._socket is None else (line or b"") + b"\n"
            elif line is None or line.strip():
                self._print(malformed(line))
        if self._socket is None and chunk:
            self._looks = time.monotonic()

    # From the server.

    def _exchange(self, ready: int) -> None:
        assert self._socket is not None  # noqa: S101 - asked by who calls
        try:
            if ready & select.POLLOUT:
                del self._up[: self._socket.send(self._up[:CHUNK], _socket.MSG_DONTWAIT)]
            if ready & ~select.POLLOUT:
                chunk = self._socket.recv(CHUNK, _socket.MSG_DONTWAIT)
                if not chunk:
                    raise ConnectionResetError
                self._hear(chunk)
        except BlockingIOError:
            return
        except OSError:
            self._lose()

    def _hear(self, chunk: bytes) -> None:
        for line in self._heard.of(chunk):
            message = parsed(line)
            if message is not None and self._client.hears(message):
                self._out += (line or b"") + b"\n"

    def _lose(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._heard = None, Lines()
        self._up.clear()
        for it in self._client.give_up():
            self._print(it)
        self._looks = time.monotonic()

    def _again(self) -> None:
        """Another server, if one is there; where the client waits for an answer, one is started."""
        self._looks = time.monotonic() + LOOKS_EVERY
        try:
            if self._client.waiting or self._start is None:
                self._connect()
            else:
                self._socket = client.take(self._path, ASKS)
        except OSError as error:
            if _is_refusal(error):
                raise _Refused(str(error)) from error
            return
        for it in self._client.again():
            self._up += json.dumps(it).encode() + b"\n"
        for it in self._client.changed():
            self._print(it)

    def _connect(self) -> None:
        """A connection that a server has taken; _Refused where none can be had."""
        until, started = time.monotonic() + STARTS_WITHIN, False
        while self._socket is None:
            try:
                self._socket = client.take(self._path, ASKS)
            except OSError as error:
                if _is_refusal(error):
                    raise _Refused(str(error)) from error
                if time.monotonic() > until:
                    raise _Refused(f"lockgate: nobody answers at {self._path}") from error
                if not started and self._start is not None:
                    self._start()
                    started = True
                time.sleep(0.02)

    def _print(self, it: Message) -> None:
        self._out += json.dumps(it).encode() + b"\n"

    def _flush(self) -> None:
        try:
            while self._out:
                del self._out[: os.write(1, self._out[:PIPE])]
        except OSError:
            self._out.clear()


class _Refused(Exception):
    """Why no server serves us."""


def _is_refusal(error: OSError) -> bool:
    """Whether somebody was there and said no, in words."""
    return error.errno is None and not isinstance(error, TimeoutError)


def parsed(line: bytes | None) -> Message | None:
    try:
        found: object = json.loads(line or b"")
    except (ValueError, RecursionError):
        return None
    return cast("Message", found) if isinstance(found, dict) else None


def malformed(line: bytes | None) -> Message:
    long = line is None
    why = f"a message has over {LONGEST} bytes" if long else "that is no message of JSON-RPC"
    return {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": why}}


def main() -> None:
    """`lockgate mcp`."""
    sys.exit(run())


def run() -> int:
    """The exit code."""
    inside = os.environ.get("LOCKGATE_SOCKET")
    path = inside or os.path.join(client.home(), "door.sock")  # noqa: PTH118 - pathlib is slow to load
    return Pipe(path, None if inside else _start_orchestrator).run()


def _start_orchestrator() -> None:
    """By a process in between: it must not be among the children that a client ends with us.

    The rest of Lockgate is loaded there, and only where this is needed.
    """
    if os.environ.get("LOCKGATE_NO_ORCHESTRATOR"):
        raise _Refused("lockgate: no orchestrator runs, and LOCKGATE_NO_ORCHESTRATOR forbids one")
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return
    try:
        from pathlib import Path

        from lockgate.bootstrap.orchestrator import start_orchestrator

        start_orchestrator(Path(client.home()), 60.0)
    finally:
        os._exit(0)
