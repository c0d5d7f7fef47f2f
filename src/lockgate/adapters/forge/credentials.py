"""With which login Lockgate asks GitHub, and where its API is. Agents and gates get none of it.

In this order: the key of an App (github/app_login.py), what `lockgate auth github` stored,
LOCKGATE_GITHUB_TOKEN, gh's own login. The token that GitHub Actions gives a job is refused: what it
pushes starts no workflow.
"""

import os
from collections.abc import Callable, Mapping

from msgspec import Struct

from lockgate.adapters.run import run
from lockgate.errors import Refused, Unavailable

NAME = "LOCKGATE_GITHUB_TOKEN"
API = "LOCKGATE_GITHUB_API"  # for a server that is not found by its name
GH_SECONDS = 10.0
PUBLIC = "github.com"


class GithubLogin(Struct, frozen=True, kw_only=True):
    host: str
    repository: str  # owner/name
    api: str
    token: Callable[[], str]


def github_login(
    origin: str,
    wanted: str,
    stored: Callable[[], Mapping[str, str]],
    environ: Mapping[str, str] = os.environ,
) -> GithubLogin:
    """`origin` is host/owner/name as the remote has it; `wanted` is owner/name of the settings."""
    host, _, path = origin.partition("/")
    repository = wanted or path
    if not repository or "/" not in repository:
        raise Refused(
            "pull requests are not used",
            why="origin is no address of a forge, and [forge] repo is not set",
            fix='set it in .lockgate/config.toml: [forge] repo = "owner/name"',
        )
    known = host or PUBLIC
    usual = "https://api.github.com/" if known == PUBLIC else f"https://{known}/api/v3/"
    api = environ.get(API) or usual
    return GithubLogin(
        host=known,
        repository=repository,
        api=api if api.endswith("/") else f"{api}/",
        token=lambda: _token(stored(), environ, known),
    )


def _token(stored: Mapping[str, str], environ: Mapping[str, str], host: str) -> str:
    token = stored.get(NAME) or environ.get(NAME, "") or _from_gh(host)
    if not token:
        raise Refused(
            "GitHub was not asked",
            why="Lockgate has no login there",
            fix="lockgate auth github --token-stdin, or log in with gh: gh auth login",
        )
    if environ.get("GITHUB_ACTIONS") == "true" and token == environ.get("GITHUB_TOKEN"):
        raise Refused(
            "GitHub was not asked",
            why="the token of an Actions job starts no workflows",
            fix="give Lockgate a login of its own: lockgate auth github --token-stdin",
        )
    return token


def _from_gh(host: str) -> str:
    try:
        done = run(("gh", "auth", "token", "--hostname", host), deadline=GH_SECONDS)
    except Unavailable:
        return ""
    return done.out.strip() if done.code == 0 else ""
