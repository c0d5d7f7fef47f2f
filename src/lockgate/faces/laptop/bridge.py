"""`lockgate mcp` on a laptop: each message of the client is a request to the server's `/mcp`.

The server keeps nothing between two of them, so that nothing is lost where it is started again.
"""

import base64
import http.client
import json
import os
import socket
import sys
import threading
from contextlib import suppress
from typing import BinaryIO

from lockgate.errors import LockgateError, Unavailable
from lockgate.faces import client
from lockgate.faces.laptop import commands
from lockgate.faces.laptop.server import PATIENT, Login, asked, broken_off
from lockgate.faces.pipe import LISTEN, LONGEST, Message, inner, lost, malformed, parsed

AT_ONCE = 32  # requests that wait for their answers
LINGERS = 10.0  # seconds that answers may take once the client has said all
VERSION = (
    "io.modelcontextprotocol/protocolVersion"  # where each message of the newer protocol has it
)
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
ACCEPTS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}


class Bridge:
    """One for a client; answers come as they come."""

    def __init__(self, login: Login) -> None:
        self._login, self._where = login, commands.where()
        self._version = ""  # as `initialize` has agreed on it
        self._room = threading.BoundedSemaphore(AT_ONCE)
        self._writing = threading.Lock()
        self._open: dict[str, http.client.HTTPResponse] = {}  # by the id of the request
        self._threads: list[tuple[threading.Thread, Message]] = []

    def run(self, source: BinaryIO) -> int:
        for line in iter(lambda: source.readline(LONGEST + 1), b""):
            message = parsed(line)
            if message is not None:
                self._begin(message)
            elif line.strip():
                self._print(malformed(line))
        for thread, message in self._threads:
            if message.get("method") != LISTEN:
                thread.join(LINGERS)
        return 0

    def _begin(self, message: Message) -> None:
        """What comes first is done first: all else depends on it."""
        method = message.get("method")
        if method == "notifications/cancelled":
            self._cancel(json.dumps(inner(message, "params").get("requestId")))
        if "id" not in message or method in {None, "initialize"}:
            self._exchange(message)
            return
        self._room.acquire()
        thread = threading.Thread(target=self._wait_for, args=(message,), daemon=True)
        self._threads = [it for it in self._threads if it[0].is_alive()]
        self._threads.append((thread, message))
        thread.start()

    def _wait_for(self, message: Message) -> None:
        try:
            self._exchange(message)
        finally:
            self._room.release()

    def _exchange(self, message: Message) -> None:
        key = json.dumps(message.get("id"))
        try:
            headers = ACCEPTS | headers_of(message, self._version)
            headers["Lockgate-Where"] = self._where
            body = json.dumps(message).encode()
            with asked(self._login, "/mcp", body, headers, patience=PATIENT) as answer:
                self._open[key] = answer
                copied = self._copied(message, answer)
            if copied or "id" not in message or "method" not in message:
                return
            what, fix = "the call was not answered", "look at the task, then call again"
            raise Unavailable(what, why="the server ended its answer early", fix=fix)
        except LockgateError as error:
            self._refuse(message, f"{error.why} ({error.fix})")
        except (OSError, http.client.HTTPException, ValueError) as error:
            if key in self._open:  # else it was cancelled
                self._refuse(message, broken_off(self._login, error))
        finally:
            self._open.pop(key, None)

    def _copied(self, message: Message, answer: http.client.HTTPResponse) -> bool:
        """Whether the answer to the request itself was among what came."""
        if "event-stream" not in answer.headers.get("content-type", ""):
            return self._hear(message, answer.read())
        done = False
        while line := answer.readline(LONGEST):
            if line.startswith(b"data:"):
                done = self._hear(message, line[5:].strip()) or done
        return done

    def _hear(self, message: Message, raw: bytes) -> bool:
        heard = parsed(raw)
        if heard is None:
            return False
        if message.get("method") == "initialize":
            self._version = str(inner(heard, "result").get("protocolVersion", ""))
        self._print(heard)
        return "method" not in heard and heard.get("id") == message.get("id")

    def _cancel(self, key: str) -> None:
        answer = self._open.pop(key, None)
        if answer is None:
            return
        # Closing the answer would wait until its reader has a word from the server.
        with (
            suppress(OSError, ValueError, AttributeError),  # it has ended meanwhile
            socket.socket(fileno=os.dup(answer.fileno())) as connection,
        ):
            connection.shutdown(socket.SHUT_RDWR)

    def _refuse(self, message: Message, why: str) -> None:
        """The client hears of each request that got no answer; the rest goes to stderr."""
        if "id" in message and "method" in message:
            self._print(lost(message, why))
        client.say(2, os.fsencode(f"lockgate: {why}\n"))

    def _print(self, it: Message) -> None:
        with self._writing:
            client.say(1, json.dumps(it).encode() + b"\n")


def headers_of(message: Message, agreed: str) -> dict[str, str]:
    """What the protocol wants said beside a message."""
    method, params = str(message.get("method", "")), inner(message, "params")
    version = str(inner(params, "_meta").get(VERSION) or "")
    if not version:
        return {"MCP-Protocol-Version": agreed} if agreed and method != "initialize" else {}
    found = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    name = params.get(NAMED.get(method, ""))
    return found | ({"Mcp-Name": _encoded(name)} if isinstance(name, str) else {})


def _encoded(value: str) -> str:
    """As it is where a header can have it, else in base64."""
    plain = value.isascii() and value.isprintable() and value == value.strip()
    if plain and not value.startswith("=?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def run(login: Login) -> int:
    return Bridge(login).run(sys.stdin.buffer)
