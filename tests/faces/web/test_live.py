"""One feed for all browsers: each gets what happens once, in order, or is told to load again."""

import asyncio
from collections.abc import AsyncIterator, Callable
from queue import SimpleQueue
from typing import Any

import pytest

from lockgate.faces.web import live
from lockgate.faces.web.live import Hub


def event(seq: int) -> dict[str, Any]:
    return {"event": {"seq": seq, "task": "t", "type": "x"}}


def hub_of(feed: "SimpleQueue[dict[str, Any]]") -> Hub:
    hub = Hub(lambda: iter(feed.get, {}))
    hub.render = lambda item: ("event", {"n": item["event"]["seq"]}) if "event" in item else None
    return hub


async def heard(stream: AsyncIterator[str], there: Callable[[str], bool]) -> str:
    said = ""
    async with asyncio.timeout(30):
        while not there(said):
            said += await anext(stream)
    return said


def test_two_hundred_browsers_hear_everything_once_and_in_order() -> None:
    async def run() -> list[str]:
        feed: SimpleQueue[dict[str, Any]] = SimpleQueue()
        hub = hub_of(feed)
        hub.start()
        streams = [hub._messages(None) for _ in range(200)]
        for stream in streams:
            await anext(stream)
        for seq in range(1, 21):
            feed.put(event(seq))
        told = [await heard(it, lambda said: "id: 20\n" in said) for it in streams]
        feed.put({})
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]  # an asynchronous generator
        return told

    for said in asyncio.run(run()):
        assert [int(it) for it in _ids(said)] == list(range(1, 21))


def test_who_comes_back_gets_what_they_missed_and_who_was_away_too_long_loads_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "KEPT", 5)

    async def run() -> tuple[str, str]:
        feed: SimpleQueue[dict[str, Any]] = SimpleQueue()
        hub = hub_of(feed)
        hub.start()
        first = hub._messages(None)
        await anext(first)
        for seq in range(1, 11):
            feed.put(event(seq))
        await heard(first, lambda said: "id: 10\n" in said)
        missed = await heard(hub._messages(8), lambda said: "id: 10\n" in said)
        away = await heard(hub._messages(2), lambda said: "event:" in said)
        feed.put({})
        return missed, away

    missed, away = asyncio.run(run())
    assert _ids(missed) == ["9", "10"]
    assert "event: resync" in away


def test_a_browser_that_does_not_read_delays_nobody_and_loads_again() -> None:
    async def run() -> str:
        feed: SimpleQueue[dict[str, Any]] = SimpleQueue()
        hub = hub_of(feed)
        hub.start()
        frozen, quick = hub._messages(None), hub._messages(None)
        await anext(frozen)
        await anext(quick)
        last = live.BEHIND * 2
        for seq in range(1, last + 1):
            feed.put(event(seq))
            if seq % 50 == 0:
                await heard(quick, lambda said, seq=seq: f"id: {seq}\n" in said)  # type: ignore[misc]  # a default
        said = await heard(frozen, lambda said: f"id: {last}\n" in said)
        feed.put({})
        return said

    said = asyncio.run(run())
    assert "event: resync" in said


def test_a_browser_that_hears_nothing_gets_a_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "BEAT", 0.01)

    async def run() -> str:
        feed: SimpleQueue[dict[str, Any]] = SimpleQueue()
        hub = hub_of(feed)
        hub.start()
        said = await heard(hub._messages(None), lambda said: said.count(": beat") == 2)
        feed.put({})
        return said

    assert asyncio.run(run()).endswith(": beat\n\n")


def _ids(said: str) -> list[str]:
    return [it.removeprefix("id: ") for it in said.splitlines() if it.startswith("id: ")]
