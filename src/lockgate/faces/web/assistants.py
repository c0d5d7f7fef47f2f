"""MCP over HTTP at `/mcp`: what `lockgate mcp` serves over a pipe, for a program with a token.

Nothing is kept between two requests but what a human was asked and has yet to answer.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from msgspec import Struct, field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from lockgate.bootstrap.outside import for_person
from lockgate.bootstrap.team import clone_in, root_of_clone
from lockgate.faces.web.guard import Visitor
from lockgate.faces.web.site import Site

if TYPE_CHECKING:  # loading it takes over a second, and most boards never need it
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from lockgate.faces.mcp.asking import Asked

MISSING = "its library is not installed"


class McpOverHttp(Struct):
    """An ASGI application; a session's token is not taken here, nor a browser's login."""

    site: Site
    _asked: "dict[str, Asked]" = field(default_factory=dict[str, "Asked"])  # by person

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = scope["state"]["visitor"]
        if not isinstance(visitor, Visitor) or not visitor.how.startswith("token"):
            answer = _refused("assistants need a token", "lockgate web token NAME", 401)
            await answer(scope, receive, send)
        elif find_spec("mcp") is None:
            answer = _refused(MISSING, "pip install 'lockgate[mcp]'", 501)
            await answer(scope, receive, send)
        else:
            told = Headers(scope=scope).get("lockgate-where", "")
            manager = await run_in_threadpool(self._manager, visitor, told)
            async with manager.run():
                await manager.handle_request(scope, receive, send)

    def _manager(self, visitor: Visitor, told: str) -> "StreamableHTTPSessionManager":
        """`told` is what a laptop says of the clone that it is in."""
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        from mcp.server.transport_security import TransportSecuritySettings

        from lockgate.faces.mcp import server
        from lockgate.faces.mcp.asking import Asked

        site, served = self.site, self.site.served
        app = for_person(site.app, visitor.person, visitor.how, read_only=visitor.read_only)
        asked = self._asked.setdefault(visitor.person, Asked())
        made = server.serving(
            server.Visitor(
                app=app,
                token="",
                directory=app.home,  # in no repository
                where=root_of_clone(app, clone_in(told)) if told else None,
                wake=site.wake,
                asked=asked,
                caller=app.caller,
            )
        )
        exact = TransportSecuritySettings(
            allowed_hosts=[served.host], allowed_origins=[served.origin]
        )
        return StreamableHTTPSessionManager(made, stateless=True, security_settings=exact)


def _refused(why: str, fix: str, status: int) -> JSONResponse:
    error = {"what": "nothing was done", "why": why, "fix": fix}
    return JSONResponse({"error": error}, status)
