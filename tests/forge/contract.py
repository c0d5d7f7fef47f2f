"""GitHub's own description of its interfaces, and whether an exchange keeps to it.

`make test` fetches the description (scripts/github_descriptions.sh); it is never committed. Here it
is cut down to the calls in `CALLS`; any other call is refused. Beyond the description, unknown keys
of a body and unknown names of a query are refused too: GitHub ignores them, and no test would fail.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from graphql import GraphQLSchema, build_schema, parse, validate
from openapi_core import Config, OpenAPI
from openapi_core.datatypes import RequestParameters
from openapi_core.exceptions import OpenAPIError
from werkzeug.datastructures import Headers, ImmutableMultiDict

ROOT = Path(__file__).parents[2]
FETCHED = ROOT / "build" / "github"
HOST = "https://api.github.com"
REPO = "/repos/{owner}/{repo}"
PULL = f"{REPO}/pulls/{{pull_number}}"
ISSUE = f"{REPO}/issues/{{issue_number}}"

CALLS: tuple[tuple[str, str], ...] = (
    ("GET", "/user"),
    ("GET", "/rate_limit"),
    ("GET", "/app"),
    ("POST", "/app/installations/{installation_id}/access_tokens"),
    ("GET", f"{REPO}/installation"),
    ("GET", REPO),
    ("GET", f"{REPO}/pulls"),
    ("POST", f"{REPO}/pulls"),
    ("GET", PULL),
    ("PATCH", PULL),
    ("PUT", f"{PULL}/merge"),
    ("GET", f"{PULL}/reviews"),
    ("GET", f"{PULL}/comments"),
    ("POST", f"{PULL}/comments/{{comment_id}}/replies"),
    ("GET", f"{PULL}/commits"),
    ("GET", f"{PULL}/files"),
    ("GET", f"{REPO}/issues"),
    ("GET", ISSUE),
    ("PATCH", ISSUE),
    ("GET", f"{ISSUE}/comments"),
    ("POST", f"{ISSUE}/comments"),
    ("PATCH", f"{REPO}/issues/comments/{{comment_id}}"),
    ("GET", f"{ISSUE}/events"),
    ("GET", f"{ISSUE}/timeline"),
    ("POST", f"{ISSUE}/labels"),
    ("DELETE", f"{ISSUE}/labels/{{name}}"),
    ("GET", f"{REPO}/commits/{{ref}}/check-runs"),
    ("GET", f"{REPO}/commits/{{ref}}/status"),
    ("POST", f"{REPO}/statuses/{{sha}}"),
    ("POST", f"{REPO}/check-runs"),
    ("PATCH", f"{REPO}/check-runs/{{check_run_id}}"),
    ("GET", f"{REPO}/check-runs/{{check_run_id}}/annotations"),
    ("GET", f"{REPO}/actions/runs"),
    ("GET", f"{REPO}/actions/runs/{{run_id}}/jobs"),
    ("GET", f"{REPO}/actions/jobs/{{job_id}}/logs"),
    ("POST", f"{REPO}/actions/runs/{{run_id}}/rerun-failed-jobs"),
    ("GET", f"{REPO}/rules/branches/{{branch}}"),
    ("GET", f"{REPO}/branches/{{branch}}"),
    ("GET", f"{REPO}/branches/{{branch}}/protection"),
    ("GET", f"{REPO}/collaborators/{{username}}/permission"),
    ("GET", f"{REPO}/git/ref/{{ref}}"),
    ("DELETE", f"{REPO}/git/refs/{{ref}}"),
)

# Members that say nothing about a change: the hub leaves them out, and they are filled in by type.
# fmt: off
DULL = frozenset({
    "_links", "node_id", "gravatar_id", "site_admin", "forks", "watchers", "open_issues", "size",
    "language", "homepage", "license", "archived", "disabled", "has_issues", "has_projects",
    "has_wiki", "has_pages", "has_discussions", "has_downloads", "network_count",
    "subscribers_count", "stargazers_count", "watchers_count", "forks_count", "open_issues_count",
    "milestone", "assignee", "locked", "bio", "blog", "company", "email", "followers",
    "following", "hireable", "location", "public_gists", "public_repos", "collaborators",
    "disk_usage", "owned_private_repos", "private_gists", "total_private_repos",
    "two_factor_authentication", "external_id", "maintainer_can_modify", "runner_id",
    "runner_name", "runner_group_id", "runner_group_name",
})
# fmt: on

Json = dict[str, Any]


class BrokenContract(Exception):
    """An exchange that GitHub's description does not allow."""


@dataclass(frozen=True)
class Exchange:
    """One request, by the call it is of."""

    method: str
    template: str
    path: Mapping[str, str]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None


class _Request:
    """What openapi-core asks of a request; it writes the names in the path into `parameters`."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(exchange.query),
            header=Headers(),
            cookie=ImmutableMultiDict(),
            path={},
        )

    @property
    def host_url(self) -> str:
        return HOST

    @property
    def path(self) -> str:
        # A name with a slash is one name to GitHub; to OpenAPI it is two.
        named = {key: quote(value, safe="") for key, value in self.exchange.path.items()}
        return self.exchange.template.format_map(named)

    @property
    def full_url_pattern(self) -> str:
        return f"{HOST}{self.path}?{urlencode(self.exchange.query)}"

    @property
    def method(self) -> str:
        return self.exchange.method.lower()

    @property
    def content_type(self) -> str:
        return "application/json"

    @property
    def body(self) -> bytes | None:
        return None if self.exchange.body is None else json.dumps(self.exchange.body).encode()


@dataclass(frozen=True)
class _Response:
    status_code: int
    data: bytes | None
    content_type: str = "application/json"
    headers: Headers = field(default_factory=Headers)


class Contract:
    """GitHub's description, ready to be asked."""

    def __init__(self, document: Json) -> None:
        self.document = _pruned(document)
        self._openapi = OpenAPI.from_dict(self.document, config=Config(spec_validator_cls=None))
        self._kept: set[str] = set()  # exchanges that were found to keep to it

    def check_request(self, exchange: Exchange) -> None:
        operation = self.operation(exchange.method, exchange.template)
        allowed = {
            it["name"]
            for it in map(self._resolved, operation.get("parameters", ()))
            if it["in"] == "query"
        }
        if unknown := set(exchange.query) - allowed:
            raise BrokenContract(
                f"{exchange.method} {exchange.template}: unknown query {sorted(unknown)}"
            )
        self._refuse_unknown_keys(exchange, operation)
        self._once(repr(exchange), exchange, self._openapi.validate_request, _Request(exchange))

    def check_answer(self, exchange: Exchange, status: int, body: object) -> None:
        operation = self.operation(exchange.method, exchange.template)
        if str(status) not in operation["responses"]:
            raise BrokenContract(
                f"{exchange.method} {exchange.template}: no answer has the code {status}"
            )
        if body is None or "content" not in self._resolved(operation["responses"][str(status)]):
            return
        answer = _Response(status, json.dumps(body).encode())
        same = f"{exchange.method} {exchange.template} {status} {answer.data!r}"
        check = self._openapi.validate_response
        self._once(same, exchange, check, _Request(exchange), answer)

    def _once(
        self, same: str, exchange: Exchange, check: Callable[..., object], *given: object
    ) -> None:
        """What was validated before is not validated again: that is most of a request's time."""
        if same in self._kept:
            return
        try:
            check(*given)
        except OpenAPIError as error:
            raise BrokenContract(_words(exchange, error)) from error
        self._kept.add(same)

    def filled(self, exchange: Exchange, status: int, body: Any) -> Any:
        """`body` with the members that say nothing about a change (DULL) where they are missing."""
        responses = self.operation(exchange.method, exchange.template)["responses"]
        content = self._resolved(responses.get(str(status), {})).get("content", {})
        schema = content.get("application/json", {}).get("schema")
        return body if schema is None else self._fill(schema, body)

    def operation(self, method: str, template: str) -> Json:
        found = self.document["paths"].get(template, {}).get(method.lower())
        if found is None:
            raise BrokenContract(f"{method} {template} is no call of GitHub's")
        return dict(found)

    def _refuse_unknown_keys(self, exchange: Exchange, operation: Json) -> None:
        if exchange.body is None:
            return
        content = self._resolved(operation.get("requestBody", {})).get("content", {})
        schema = self._resolved(content.get("application/json", {}).get("schema", {}))
        known = {key for part in self._parts(schema) for key in part.get("properties", {})}
        if unknown := set(exchange.body) - known:
            raise BrokenContract(
                f"{exchange.method} {exchange.template}: unknown keys {sorted(unknown)}"
            )

    def _resolved(self, value: Any) -> Json:
        while "$ref" in value:
            place = self.document
            for part in value["$ref"].split("/")[1:]:
                place = place[part]
            value = place
        return dict(value)

    def _parts(self, schema: Json) -> Iterator[Json]:
        schema = self._resolved(schema)
        yield schema
        for key in ("allOf", "oneOf", "anyOf"):
            for part in schema.get(key, ()):
                yield from self._parts(part)

    def _fill(self, schema: Any, value: Any) -> Any:
        schema = self._resolved(schema)
        match value:
            case list():
                return [self._fill(schema.get("items", {}), it) for it in value]
            case dict():
                return self._fill_object(schema, value)
            case _:
                return value

    def _fill_object(self, schema: Json, value: Json) -> Json:
        if len(schema.get("oneOf", ())) + len(schema.get("anyOf", ())) > 4:
            return value  # one of many kinds: the hub says it whole
        parts = [
            schema,
            *schema.get("allOf", ()),
            *schema.get("oneOf", ())[:1],
            *schema.get("anyOf", ())[:1],
        ]
        filled = dict(value)
        for part in map(self._resolved, parts):
            known = part.get("properties", {})
            for name in part.get("required", ()):
                if name not in filled and _is_dull(name):
                    filled[name] = self._dull(known.get(name, {}))
            for name, inner in known.items():
                if name in filled:
                    filled[name] = self._fill(inner, filled[name])
        return filled

    def _dull(self, schema: Any) -> Any:
        schema = self._resolved(schema)
        if schema.get("nullable"):
            return None
        match schema.get("type"):
            case "integer" | "number":
                return 0
            case "boolean":
                return False
            case "array":
                return []
            case "object":
                return {
                    name: self._dull(inner)
                    for name, inner in schema.get("properties", {}).items()
                    if name in schema.get("required", ())
                }
            case _:
                return f"{HOST}/dull"


def _is_dull(name: str) -> bool:
    return name in DULL or name.endswith(("url", "href"))


def _words(exchange: Exchange, error: OpenAPIError) -> str:
    causes: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(str(cause)[:300])
        causes += [
            f"{'.'.join(map(str, it.absolute_path))}: {it.message[:200]}"
            for it in getattr(cause, "schema_errors", ())
        ]
        cause = cause.__cause__
    return f"{exchange.method} {exchange.template}: " + "; ".join(causes)


def _pruned(document: Json) -> Json:
    """The document with the calls of CALLS and the components that they name."""
    paths: Json = {}
    for method, template in CALLS:
        paths.setdefault(template, {})[method.lower()] = document["paths"][template][method.lower()]
    components: dict[str, Json] = {}
    todo = [paths]
    while todo:
        for kind, name in _references(todo.pop()):
            if name not in components.setdefault(kind, {}):
                found = document["components"][kind][name]
                components[kind][name] = found
                todo.append(found)
    _say_null(paths)
    _say_null(components)
    whole = {key: document[key] for key in ("openapi", "info")}
    return {**whole, "servers": [{"url": HOST}], "paths": paths, "components": components}


def _say_null(value: object) -> None:
    """GitHub says `nullable` beside a list of values; a validator needs null in that list."""
    match value:
        case dict():
            if value.get("nullable") is True and None not in value.get("enum", (None,)):
                value["enum"] = [*value["enum"], None]
            if value.get("nullable") is True and "oneOf" in value:
                value["oneOf"] = [*value["oneOf"], {"nullable": True, "enum": [None]}]
            for inner in value.values():
                _say_null(inner)
        case list():
            for inner in value:
                _say_null(inner)
        case _:
            pass


def _references(value: object) -> Iterator[tuple[str, str]]:
    match value:
        case {"$ref": str() as ref} if ref.startswith("#/components/"):
            _, _, kind, name = ref.split("/")
            yield kind, name
        case dict():
            for inner in value.values():
                yield from _references(inner)
        case list():
            for inner in value:
                yield from _references(inner)
        case _:
            pass


# --- what the tests ask for ---------------------------------------------------------------------


def need(name: str) -> Path:
    """A fetched file, or the test is skipped."""
    if not (FETCHED / name).exists():
        pytest.skip("needs GitHub's descriptions: run scripts/github_descriptions.sh (by npm)")
    return FETCHED / name


@cache
def load_contract() -> Contract:
    return Contract(json.loads(need("rest.json").read_bytes()))


@cache
def load_schema() -> GraphQLSchema:
    text = need("schema.graphql").read_text(encoding="utf-8")
    return build_schema(text, assume_valid=True, no_location=True)


def check_graphql(text: str) -> list[str]:
    """What GitHub's schema has against a GraphQL document."""
    return [it.message for it in validate(load_schema(), parse(text))]
