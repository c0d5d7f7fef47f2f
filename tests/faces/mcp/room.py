"""A home with a client of the SDK beside it: calls tools in this process, in either protocol."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import mcp_types as types
from mcp import Client

from lockgate.bootstrap import App
from lockgate.faces.mcp.news import News
from lockgate.faces.mcp.server import Visitor, serving
from tests.faces.shell import Shell

OLD, NEW = "legacy", "2026-07-28"  # as the SDK's client names them; the old one is 2025-11-25
BOTH = (OLD, NEW)
ASSISTANT = "claude-code"
T = TypeVar("T")
Form = Callable[[str], types.ElicitResult]
YES = types.ElicitResult(action="accept", content={"confirm": True})
NO = types.ElicitResult(action="accept", content={"confirm": False})
DECLINED = types.ElicitResult(action="decline")
CANCELLED = types.ElicitResult(action="cancel")


@dataclass
class Room:
    """What one assistant, or agent, sees of a home."""

    shell: Shell
    token: str = ""
    mode: str = NEW
    name: str = ASSISTANT
    says: types.ElicitResult | None = None  # to a form; None: the client cannot show one
    shown: list[str] = field(default_factory=list[str])  # the forms that were shown
    before: Callable[[], None] = lambda: None  # done while the human looks at a form
    news: News = field(default_factory=News)
    hears: Any = None  # what the server says by itself

    def with_client(self, does: Callable[[Client], Awaitable[T]]) -> T:
        async def run() -> T:
            app = self.shell.app()
            try:
                async with self.client(app) as client:
                    return await does(client)
            finally:
                app.store.close()

        return asyncio.run(run())

    def client(self, app: App) -> Client:
        visitor = Visitor(
            app=app, token=self.token, directory=self.shell.repo, uid=os.getuid(), news=self.news
        )

        async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
            self.shown.append(params.message)
            self.before()
            assert self.says is not None
            return self.says

        return Client(
            serving(visitor),
            mode=self.mode,
            client_info=types.Implementation(name=self.name, version="1"),
            message_handler=self.hears,
            elicitation_callback=None if self.says is None else answer,
        )

    def tools(self) -> dict[str, types.Tool]:
        async def listed(client: Client) -> list[types.Tool]:
            return list((await client.list_tools()).tools)

        return {it.name: it for it in self.with_client(listed)}

    def call(self, name: str, **arguments: Any) -> types.CallToolResult:
        return self.calls((name, arguments))[0]

    def calls(self, *asked: tuple[str, dict[str, Any]]) -> Sequence[types.CallToolResult]:
        async def called(client: Client) -> list[types.CallToolResult]:
            return [await client.call_tool(name, arguments) for name, arguments in asked]

        return self.with_client(called)

    def did(self, name: str, **arguments: Any) -> Any:
        """What a call that succeeds gives."""
        result = self.call(name, **arguments)
        assert not result.is_error, result
        return result.structured_content

    def refused(self, name: str, **arguments: Any) -> dict[str, str]:
        """The three parts of a refusal, which must be there, as data and as text."""
        return parts(self.call(name, **arguments))


def parts(result: types.CallToolResult) -> dict[str, str]:
    assert result.is_error, result
    told: dict[str, str] = result.structured_content
    assert set(told) == {"what", "why", "fix"}, told
    assert all(it.strip() for it in told.values()), told
    assert told["why"][:20] in text_of(result)
    return told


def text_of(result: types.CallToolResult) -> str:
    text = result.content[0]
    assert isinstance(text, types.TextContent)
    return text.text
