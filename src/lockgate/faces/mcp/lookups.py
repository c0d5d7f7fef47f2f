"""Handlers of resources and prompts, for operators' assistants: read, subscribe, pick.

The protocol has no refusal as data here: what is refused is an error with the three parts in it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ListenHandler, ResourceUpdated, ServerEvent
from mcp.shared.exceptions import MCPError

from lockgate.errors import LockgateError
from lockgate.faces.mcp import answers, prompts, resources
from lockgate.faces.mcp.calls import Desk
from lockgate.faces.mcp.news import News

Context = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams
T = TypeVar("T")


class Lookups:
    """What one connection reads and has subscribed to."""

    def __init__(self, desk: Callable[[], Desk], news: News) -> None:
        self._desk, self._news = desk, news
        self._subscribed: dict[str, ServerSession] = {}  # of 2025-11-25, by what to
        self._end: Callable[[], None] | None = None
        self._told = set[asyncio.Task[None]]()

    def add_to(self, server: Server[Any]) -> None:
        add = server.add_request_handler
        add("resources/list", Page, self.list)
        add("resources/templates/list", Page, self.templates)
        add("resources/read", types.ReadResourceRequestParams, self.read)
        add("resources/subscribe", types.SubscribeRequestParams, self.subscribe)
        add("resources/unsubscribe", types.UnsubscribeRequestParams, self.unsubscribe)
        add(
            "subscriptions/listen",
            types.SubscriptionsListenRequestParams,
            ListenHandler(Bus(self._news)),
        )
        add("prompts/list", Page, self.prompts)
        add("prompts/get", types.GetPromptRequestParams, self.prompt)

    @asynccontextmanager
    async def living(self, _server: Server[Any]) -> AsyncGenerator[dict[str, Any]]:
        """For as long as the connection is there."""
        try:
            yield {}
        finally:
            if self._end is not None:
                self._end()

    async def list(self, _ctx: Context, _params: Page) -> types.ListResourcesResult:
        found = await _done(lambda: resources.listed(self._desk()))
        return types.ListResourcesResult(resources=found)

    async def templates(self, _ctx: Context, _params: Page) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.templates())

    async def read(
        self, _ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        found = await _done(lambda: resources.read(self._desk(), str(params.uri)))
        return types.ReadResourceResult(contents=[found])

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        if self._end is None:
            self._end = Bus(self._news).subscribe(self._tell)
        self._subscribed[str(params.uri)] = ctx.session
        return types.EmptyResult()

    async def unsubscribe(
        self, _ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._subscribed.pop(str(params.uri), None)
        return types.EmptyResult()

    async def prompts(self, _ctx: Context, _params: Page) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=prompts.listed())

    async def prompt(
        self, _ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        return await _done(lambda: prompts.written(params.name, params.arguments or {}))

    def _tell(self, event: ServerEvent) -> None:
        session = self._subscribed.get(event.uri) if isinstance(event, ResourceUpdated) else None
        if isinstance(event, ResourceUpdated) and session is not None:
            telling = asyncio.ensure_future(session.send_resource_updated(event.uri))
            self._told.add(telling)
            telling.add_done_callback(self._told.discard)


class Bus:
    """The SDK's SubscriptionBus over our news, which come from another thread."""

    def __init__(self, news: News) -> None:
        self._news = news

    async def publish(self, event: ServerEvent) -> None:
        """Nobody here makes news."""

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        loop = asyncio.get_running_loop()

        def told(uris: frozenset[str]) -> None:
            if not loop.is_closed():
                for uri in uris:
                    loop.call_soon_threadsafe(listener, ResourceUpdated(uri=uri))

        return self._news.listen(told)


async def _done(does: Callable[[], T]) -> T:
    try:
        return await anyio.to_thread.run_sync(does)
    except LockgateError as error:
        told = answers.plain(answers.refusal(error))
        raise MCPError(types.INVALID_PARAMS, f"{told['what']}: {told['why']}", told) from error
