"""JSON-RPC over a socket: what is read, what is refused, and when a connection ends."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
import pytest
from anyio import EndOfStream
from mcp.shared.message import SessionMessage

from lockgate.faces.mcp import lines
from lockgate.faces.mcp.lines import CANCELLED, LISTEN, Received, Sent, Wire


class Line:
    """The client's end of a connection, and the streams of the server's."""

    def __init__(self, received: Received, sent: Sent, ending: asyncio.Event) -> None:
        self.received, self.sent, self.ending = received, sent, ending
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    def says(self, **message: Any) -> None:
        self.writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def hears(self) -> Any:
        return json.loads(await self.reader.readline())

    async def taken(self) -> Any:
        """The next message that the server gets."""
        it = await self.received.receive()
        assert isinstance(it, SessionMessage)
        return it.message

    async def answers(self, id: int) -> None:
        answer = types.JSONRPCResponse(jsonrpc="2.0", id=id, result={})
        await self.sent.send(SessionMessage(answer))


def over_a_wire(does: Callable[[Line], Awaitable[None]]) -> None:
    async def run() -> None:
        ours, theirs = socket.socketpair()
        ending = asyncio.Event()
        async with Wire.over(theirs, ending) as (received, sent):
            line = Line(received, sent, ending)
            line.reader, line.writer = await asyncio.open_connection(sock=ours)
            await does(line)
            line.writer.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_messages_come_and_go_a_line_each_and_empty_lines_are_nothing() -> None:
    async def does(line: Line) -> None:
        line.writer.write(b"\n  \n")
        line.says(id=1, method="ping")
        request = await line.taken()
        await line.answers(1)

        assert (request.id, request.method) == (1, "ping")
        assert await line.hears() == {"jsonrpc": "2.0", "id": 1, "result": {}}

    over_a_wire(does)


def test_a_line_that_is_no_message_is_answered_and_the_next_one_is_read() -> None:
    async def does(line: Line) -> None:
        line.writer.write(b"{\n")
        line.says(id=2, method="ping")

        error = (await line.hears())["error"]
        assert (error["code"], error["message"]) == (
            types.PARSE_ERROR,
            "that is no message of JSON-RPC",
        )
        assert (await line.taken()).id == 2

    over_a_wire(does)


def test_a_message_that_is_too_long_is_refused_once_and_skipped_to_its_end(monkeypatch) -> None:
    monkeypatch.setattr(lines, "LONGEST", 1000)

    async def does(line: Line) -> None:
        line.writer.write(b"x" * 1001)
        error = (await line.hears())["error"]
        line.writer.write(b"x" * 5000)
        line.writer.write(b"the end\n")
        line.says(id=3, method="ping")

        assert (error["code"], error["message"]) == (
            types.INVALID_REQUEST,
            "a message has over 1000 bytes",
        )
        assert (await line.taken()).id == 3

    over_a_wire(does)


def test_at_the_end_what_was_asked_is_answered_first_and_nothing_new_is_read() -> None:
    async def does(line: Line) -> None:
        line.says(id=4, method="ping")
        await line.taken()
        line.ending.set()
        await line.answers(4)

        assert (await line.hears())["id"] == 4
        with pytest.raises(EndOfStream):
            await line.taken()

    over_a_wire(does)


def test_a_call_that_was_cancelled_and_one_that_listens_keep_no_connection_open() -> None:
    async def does(line: Line) -> None:
        line.says(id=5, method="ping")
        line.says(id=6, method=LISTEN, params={})
        line.says(method=CANCELLED, params={"requestId": 5})
        for _ in range(3):
            await line.taken()
        line.ending.set()

        with pytest.raises(EndOfStream):
            await line.taken()

    over_a_wire(does)


def test_a_client_that_is_gone_ends_the_stream() -> None:
    async def does(line: Line) -> None:
        line.writer.transport.abort()

        with pytest.raises(EndOfStream):
            await line.taken()

    over_a_wire(does)
