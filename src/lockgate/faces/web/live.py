"""One feed for all browsers: what it brings is made into HTML once and sent to each of them."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from threading import Thread
from typing import Any

from starlette.responses import StreamingResponse

MOST = 512  # browsers at once
BEHIND = 200  # messages that one may be behind; then it loads its page again
KEPT = 500  # last messages, for a browser that comes back
BEAT = 15.0
AGAIN = 5.0  # seconds before a feed that was refused is asked for again

Item = dict[str, Any]  # a line of the feed
Rendered = Callable[[Item], tuple[str, dict[str, object]] | None]


class Hub:
    """Reads the feed in a thread of its own; browsers wait in the event loop."""

    def __init__(self, follow: Callable[[], Iterable[Item]]) -> None:
        self._follow = follow
        self.render: Rendered = lambda _: None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[asyncio.Queue[str]] = set()
        self._kept: deque[tuple[int, str]] = deque(maxlen=KEPT)
        self._lost = ""

    def start(self) -> None:
        """In the event loop that serves the browsers."""
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(BEAT, self._beat, self._loop)
        Thread(target=self._read, name="feed", daemon=True).start()

    @property
    def readers(self) -> int:
        return len(self._waiting)

    def stream(self, since: int | None) -> StreamingResponse | None:
        """None where too many browsers are there already."""
        if len(self._waiting) >= MOST:
            return None
        headers = {"x-accel-buffering": "no"}
        return StreamingResponse(
            self._messages(since), media_type="text/event-stream", headers=headers
        )

    async def _messages(self, since: int | None) -> AsyncIterator[str]:
        queue = asyncio.Queue[str](BEHIND)
        self._waiting.add(queue)
        try:
            yield f"retry: 1000\n\n{self._lost}"
            for message in self._missed(since):
                yield message
            while True:
                yield await queue.get()
        finally:
            self._waiting.discard(queue)

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """For all at once: a clock for each of them costs more than what it says."""
        for queue in self._waiting:
            if queue.empty():
                queue.put_nowait(": beat\n\n")
        loop.call_later(BEAT, self._beat, loop)

    def _missed(self, since: int | None) -> list[str]:
        if since is None:
            return []
        if self._kept and since < self._kept[0][0] - 1:
            return [_message("resync", {}, since)]
        return [text for seq, text in self._kept if seq > since]

    def _read(self) -> None:
        """Where no feed is given, people see why, and it is asked for again."""
        while True:
            try:
                self._read_on()
            except Exception as error:  # noqa: BLE001 - a page that stays old must say so
                self._pass({"lost": str(error)})
            else:
                return
            time.sleep(AGAIN)

    def _read_on(self) -> None:
        for item in self._follow():
            self._pass(item)

    def _pass(self, item: Item) -> None:
        rendered = None
        with suppress(Exception):  # one event that cannot be shown does not end the feed
            rendered = self.render(item)
        if rendered is None or self._loop is None:
            return
        kind, facts = rendered
        seq = int(item["event"]["seq"]) if "event" in item else None
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._tell, kind, facts, seq)

    def _tell(self, kind: str, facts: dict[str, object], seq: int | None) -> None:
        text = _message(kind, facts, seq)
        if seq is not None:
            self._kept.append((seq, text))
        if kind in {"lost", "back"}:
            self._lost = text if kind == "lost" else ""
        for queue in self._waiting:
            if queue.full():
                while not queue.empty():
                    queue.get_nowait()
                text_now = _message("resync", {}, seq)
            else:
                text_now = text
            queue.put_nowait(text_now)


def _message(kind: str, facts: dict[str, object], seq: int | None) -> str:
    number = f"id: {seq}\n" if seq is not None else ""
    return f"{number}event: {kind}\ndata: {json.dumps(facts)}\n\n"
