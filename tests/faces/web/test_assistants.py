"""MCP over HTTP: the SDK's own client, with a token, in both protocol versions."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from lockgate.bootstrap.outside import web_logins_of
from lockgate.core.model.task import Status
from tests.faces.mcp.room import BOTH
from tests.faces.web.home import a_home
from tests.faces.web.serving import Board, serving


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Board]:
    home = a_home(tmp_path)
    home.put(home.started("csv", "Export as CSV"), Status.STUCK)
    with serving(home) as board:
        yield board
    home.app.close()


def token(board: Board, *, read_only: bool = False) -> str:
    app = board.home.app
    return web_logins_of(app).token(app.caller.by, "it", app.caller, read_only=read_only)


def called(board: Board, mode: str, key: str, tool: str, **asked: object) -> Any:
    async def run() -> Any:
        headers = {"Authorization": f"Bearer {key}", "Host": board.served.host}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            url = f"http://127.0.0.1:{board.port}/mcp"
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode) as client:
                listed = await client.list_tools()
                assert tool in [it.name for it in listed.tools]
                return await client.call_tool(tool, asked)

    return asyncio.run(run())


@pytest.mark.parametrize("mode", BOTH)
def test_an_assistant_lists_what_needs_the_human(shop: Board, mode: str) -> None:
    found = called(shop, mode, token(shop), "list_tasks", needs=True)

    [row] = found.structured_content["rows"]
    assert row["summary"] == "Export as CSV"


def test_a_read_only_token_changes_nothing(shop: Board) -> None:
    id = shop.home.app.boards.board().rows[0].id

    found = called(shop, BOTH[1], token(shop, read_only=True), "cancel_task", task_id=id)

    assert found.is_error
    assert "the right to look" in str(found.structured_content or found.content)
    assert shop.home.load(id).status is Status.STUCK


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        ([("Authorization", "Bearer wrong")], 401),
        ([("Cookie", "lockgate={login}"), ("Origin", "{origin}")], 401),
        ([("Authorization", "Bearer {token}"), ("Origin", "http://evil.example")], 403),
    ],
)
def test_who_has_no_token_or_comes_from_elsewhere_is_refused(shop, headers, status) -> None:
    key = token(shop)
    said = [(k, v.format(login=shop.login, origin=shop.origin, token=key)) for k, v in headers]
    usual = [("Host", shop.served.host), ("Content-Type", "application/json")]
    usual.append(("Accept", "application/json, text/event-stream"))
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'

    answer = shop.ask("POST", "/mcp", [*usual, *said], body)

    assert answer.status in {status, 403}
