"""The process that serves MCP: the orchestrator hands it connections, and it keeps the SDK loaded.

`python -m lockgate.faces.mcp.child FD` takes connections from the orchestrator over the socket FD:
each comes with a JSON object that says who called. Without FD it serves the one connection that
its stdin is. When the orchestrator has ended it takes nothing new, finishes the calls that it has
begun, and ends too.
"""

import asyncio
import json
import logging
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import anyio.to_thread
from msgspec import Struct

from lockgate.bootstrap import App, open_app
from lockgate.faces import client
from lockgate.faces.mcp.lines import Wire
from lockgate.faces.mcp.news import News
from lockgate.faces.mcp.server import Visitor, serving

LONGEST_HEAD = 1 << 16
GONE = b"-"  # what the orchestrator is told of each connection that has ended
LOG = logging.getLogger(__name__)


class Caller(Struct, frozen=True):
    """Who was at the door."""

    token: str
    directory: str
    uid: int | None = None


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    token = os.environ.pop("LOCKGATE_TOKEN", "")
    os.environ["LOCKGATE_NO_ORCHESTRATOR"] = "1"  # this is an orchestrator's, and starts none
    house = House(open_app())
    if len(sys.argv) > 1:
        work = house.serve(socket.socket(fileno=int(sys.argv[1])))
    else:
        alone = Caller(token, str(Path.cwd()))
        work = house.attend(socket.socket(fileno=os.dup(0)), alone)
    asyncio.run(work)
    os._exit(0)  # a thread that waits for events is not waited for


class House:
    """Serves connections; what happens is followed while there is one."""

    def __init__(self, app: App) -> None:
        self._app, self._news = app, News()
        self._visits = set[asyncio.Task[None]]()
        self._ending = asyncio.Event()

    async def serve(self, control: socket.socket) -> None:
        """Until the orchestrator ends, and what was begun by then."""
        control.setblocking(False)  # noqa: FBT003 - as the library has it
        while await self._taken(control):
            pass
        self._ending.set()
        if self._visits:
            await asyncio.wait(self._visits)

    async def _taken(self, control: socket.socket) -> bytes:
        """The word that came with a connection, which is attended to; nothing at the end."""
        await _readable(control)
        head, descriptors, _, _ = socket.recv_fds(control, LONGEST_HEAD, 1)
        for descriptor in descriptors:
            connection = socket.socket(fileno=descriptor)
            visit = asyncio.create_task(self._visit(control, connection, head))
            self._visits.add(visit)
            visit.add_done_callback(self._visits.discard)
        return head

    async def _visit(self, control: socket.socket, connection: socket.socket, head: bytes) -> None:
        told = json.loads(head)
        caller = Caller(str(told["token"]), str(told["directory"]), told["uid"])
        try:
            await self.attend(connection, caller)
        except Exception:  # one connection must not end the others
            LOG.exception("a connection")
        finally:
            if len(self._visits) == 1:  # the last one: an orchestrator that is idle may end
                self._news.close()
            with suppress(OSError):  # the orchestrator has ended
                control.send(GONE)

    async def attend(self, connection: socket.socket, caller: Caller) -> None:
        visitor = Visitor(
            app=self._app,
            token=caller.token,
            directory=Path(caller.directory),
            uid=caller.uid,
            wake=_wake,
            news=self._news,
        )
        server = await anyio.to_thread.run_sync(serving, visitor)
        async with Wire.over(connection, self._ending) as (received, sent):
            await server.run(received, sent, server.create_initialization_options())


def _wake() -> None:
    """Where no orchestrator runs, the next one finds what was done."""
    client.call(["wake"])


async def _readable(control: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    came = loop.create_future()
    loop.add_reader(control, came.set_result, None)
    try:
        await came
    finally:
        loop.remove_reader(control)


if __name__ == "__main__":
    main()
