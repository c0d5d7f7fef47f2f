"""MCP over HTTP: the SDK's own client, with a token, in both protocol versions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import mcp_types as types
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has none
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from lockgate.bootstrap.outside import web_logins_of
from lockgate.core.model.task import Status
from tests.faces.mcp.room import ASSISTANT, BOTH, DECLINED, NEW, YES, parts
from tests.faces.mcp.test_tools import OPERATORS, given
from tests.faces.web.home import a_home
from tests.faces.web.serving import Board, serving

T = TypeVar("T")


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


def over_http(
    board: Board, mode: str, key: str, does: Callable[[Client], Awaitable[T]], **more: Any
) -> T:
    async def run() -> T:
        headers = {"Authorization": f"Bearer {key}", "Host": board.served.host}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            url = f"http://127.0.0.1:{board.port}/mcp"
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode, **more) as client:
                return await does(client)

    return asyncio.run(run())


def called(board: Board, mode: str, key: str, tool: str, **asked: object) -> Any:
    async def calls(client: Client) -> Any:
        listed = await client.list_tools()
        assert tool in [it.name for it in listed.tools]
        return await client.call_tool(tool, asked)

    return over_http(board, mode, key, calls)


@pytest.mark.parametrize("mode", BOTH)
def test_an_assistant_lists_what_needs_the_human(shop: Board, mode: str) -> None:
    found = called(shop, mode, token(shop), "list_tasks", needs=True)

    [row] = found.structured_content["rows"]
    assert row["summary"] == "Export as CSV"


@pytest.mark.parametrize("mode", BOTH)
def test_every_tool_has_its_schemas_and_answers_or_refuses_in_three_parts(shop, mode) -> None:
    id = shop.home.app.boards.board().rows[0].id

    def asked(tool: str) -> dict[str, Any]:  # no directory says which project is meant
        which = {"project": "shop"} if tool in {"create_task", "create_tasks", "queue"} else {}
        return {**given(tool, id), **which}

    async def all_of_them(client: Client) -> tuple[list[Any], dict[str, Any]]:
        listed = list((await client.list_tools()).tools)
        done = {it.name: await client.call_tool(it.name, asked(it.name)) for it in listed}
        return listed, done

    listed, done = over_http(shop, mode, token(shop), all_of_them)

    assert {it.name for it in listed} == OPERATORS
    for it in listed:
        Draft202012Validator.check_schema(it.input_schema)
        Draft202012Validator.check_schema(it.output_schema)
    refused = {name for name, it in done.items() if it.is_error and parts(it)}
    assert {"approve", "reject", "resume_task"} <= refused
    assert not {"list_tasks", "get_task", "why", "events", "create_task"} & refused


@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.parametrize("says", [YES, DECLINED, None], ids=["accepted", "declined", "absent"])
@pytest.mark.unmeasured
def test_a_yes_over_http_is_the_human_s(
    shop: Board, mode: str, says: types.ElicitResult | None
) -> None:
    """The older protocol has no way back over HTTP that keeps nothing: there it is refused."""
    home = shop.home
    home.app.assistants.grant(ASSISTANT, home.app.caller)
    task = home.waiting(home.changed(home.started("a", "Go on"), {"a.txt": "x\n"}))
    shown: list[str] = []

    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        shown.append(params.message)
        assert says is not None
        return says

    async def approves(client: Client) -> Any:
        return await client.call_tool("approve", {"task_id": task.id, "patch": task.patch})

    me = types.Implementation(name=ASSISTANT, version="1")
    form = answer if says else None
    found = over_http(shop, mode, token(shop), approves, client_info=me, elicitation_callback=form)

    counts = mode == NEW and says is YES
    assert found.is_error is not counts
    assert len(home.load(task.id).approvals) == int(counts)
    assert len(shown) == int(mode == NEW and says is not None)
    if not counts:
        assert parts(found)["fix"]


def test_tokens_of_sessions_of_other_homes_and_revoked_ones_are_not_taken(
    shop: Board, tmp_path: Path
) -> None:
    home, app = shop.home, shop.home.app
    working = home.spoke(home.started("b", "Work"), "x")
    other = a_home(tmp_path / "other")
    foreign = web_logins_of(other.app).token("ann", "it", other.app.caller, read_only=False)
    revoked = token(shop)
    web_logins_of(app).revoke("it", app.caller)
    other.app.close()

    for key in (foreign, revoked, f"{working.id}.1", f"hash of {working.id}"):
        headers = [("Host", shop.served.host), ("Authorization", f"Bearer {key}")]
        assert shop.ask("POST", "/mcp", headers, "{}").status == 401


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
