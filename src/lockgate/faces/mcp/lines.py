"""JSON-RPC over a socket, a message a line, as streams of the SDK."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

LONGEST = 32 << 20  # bytes of one message
CHUNK = 1 << 16
PAUSE = 0.02  # seconds between two looks at whether a call has ended
CANCELLED = "notifications/cancelled"
LISTEN = "subscriptions/listen"  # a request that is answered when its client is gone

Received = MemoryObjectReceiveStream[SessionMessage | Exception]
Sent = MemoryObjectSendStream[SessionMessage]


class Wire:
    """One connection, and the requests of it that have no answer yet."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._open = set[types.RequestId]()

    @staticmethod
    @asynccontextmanager
    async def over(
        connection: socket.socket, ending: asyncio.Event
    ) -> AsyncGenerator[tuple[Received, Sent]]:
        """The streams. When `ending` is set they end, once every request has its answer."""
        reader, writer = await asyncio.open_connection(sock=connection)
        it = Wire(reader, writer)
        into, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, out = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(it._read, into, ending)
                tasks.start_soon(it._write, out)
                yield received, sent
                tasks.cancel_scope.cancel()
        finally:
            writer.close()
            for stream in (into, received, sent, out):
                stream.close()

    async def _read(
        self, into: MemoryObjectSendStream[SessionMessage | Exception], ending: asyncio.Event
    ) -> None:
        async with into, anyio.create_task_group() as tasks:
            tasks.start_soon(self._end, ending, tasks.cancel_scope)
            buffered, skipping = bytearray(), False
            while chunk := await self._chunk():
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    whole, buffered = bytes(buffered) + line, bytearray()
                    if not skipping:
                        await self._take(whole, into)
                    skipping = False
                buffered += b"" if skipping else rest
                if len(buffered) > LONGEST:
                    buffered.clear()
                    skipping = True
                    self._complain(types.INVALID_REQUEST, f"a message has over {LONGEST} bytes")
            tasks.cancel_scope.cancel()

    async def _chunk(self) -> bytes:
        try:
            return await self._reader.read(CHUNK)
        except OSError:
            return b""  # the other end has gone

    async def _end(self, ending: asyncio.Event, reading: anyio.CancelScope) -> None:
        """Nothing new is read; what was read is answered first."""
        await ending.wait()
        while self._open:  # noqa: ASYNC110 - it happens once in a connection's life
            await anyio.sleep(PAUSE)
        reading.cancel()

    async def _take(
        self, line: bytes, into: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        if not line.strip():
            return
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._complain(types.PARSE_ERROR, "that is no message of JSON-RPC")
            return
        if isinstance(message, types.JSONRPCRequest) and message.method != LISTEN:
            self._open.add(message.id)
        if isinstance(message, types.JSONRPCNotification) and message.method == CANCELLED:
            self._open.discard((message.params or {}).get("requestId", ""))
        await into.send(SessionMessage(message))

    async def _write(self, out: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with out:
            async for it in out:
                text = it.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._writer.write(text.encode() + b"\n")
                if isinstance(it.message, types.JSONRPCResponse | types.JSONRPCError):
                    self._open.discard(it.message.id)
                try:
                    await self._writer.drain()
                except OSError:
                    return  # the other end has gone

    def _complain(self, code: int, why: str) -> None:
        error = types.JSONRPCError(
            jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=why)
        )
        self._writer.write(error.model_dump_json(by_alias=True).encode() + b"\n")
