"""GitHub's API over httpx: one request at a time, conditional, within its limits.

An answer that was seen before is asked for with its ETag, which costs nothing where it is the same.
Pages are followed to the end; a page that is lost makes the whole answer lost. What a token may do
not is told apart from what GitHub cannot do now.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
from msgspec import Struct, field

from lockgate.adapters.forge.github import reading
from lockgate.core.forge.pace import RESERVE, Budget
from lockgate.errors import Unavailable

API = "2022-11-28"
PER_PAGE = 100
MOST_PAGES = 100
MOST_LOG = 20 * 1024 * 1024
CUT = "\n(The log is longer than 20 MB; its end was not read.)\n"
SECONDS = 20.0
BETWEEN_WRITES = 1.0
FIRST_WAIT, LONGEST_WAIT = 60.0, 3600.0
FULL_AGAIN = 3600.0  # seconds after which a limit is full again at the latest
KEPT = 2000  # answers that are remembered by their ETag
CORE, GRAPHQL, ALL = "core", "graphql", ""  # limits, each with its own count
TOO_MANY, FORBIDDEN, NOT_MODIFIED, UNAUTHORIZED, PARTIAL = 429, 403, 304, 401, 206
SERVER_ERROR, CLIENT_ERROR = 500, 400

Json = Any


class Denied(Unavailable):
    """GitHub refuses for good: the token may not, or there is no such thing."""

    def __init__(self, status: int, words: str, at: float = 0.0) -> None:
        super().__init__(
            "GitHub did not do what was asked",
            why=f"{status}: {words}",
            fix="see what the token may do: lockgate forge check",
        )
        self.status, self.words, self.at = status, words, at  # `at`: server time


class Answer(Struct, frozen=True):
    status: int
    body: Json
    next: str
    at: float  # server time


class Bucket(Struct):
    """What is left of a limit, and when it is full again, by the server's clock."""

    limit: int = 5000
    remaining: int = 5000
    reset: float = 0.0
    at: float = 0.0  # server time of the answer that said so


class Wires(Struct, frozen=True, kw_only=True):
    """What a client needs of the world; tests bring their own."""

    elapsed: Callable[[], float]
    sleep: Callable[[float], None]
    transport: httpx.BaseTransport | None = None


class Client(Struct, kw_only=True):
    """`token` is asked for each time: an App's lives an hour."""

    api: str
    token: Callable[[], str]
    wires: Wires
    buckets: dict[str, Bucket] = field(default_factory=dict[str, Bucket])
    paid: int = 0  # requests that the limit of REST counted
    _known: dict[str, tuple[str, str, Answer]] = field(
        default_factory=dict[str, tuple[str, str, Answer]]
    )
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _wrote: float = -BETWEEN_WRITES
    _silent_until: dict[str, float] = field(default_factory=dict[str, float])  # by bucket
    _refusals: int = 0
    _http: httpx.Client | None = None

    def get(self, path: str, **query: object) -> Json:
        """One answer; KeyError never: a missing thing is Denied with 404."""
        return self._conditional(self._url(path, query)).body

    def get_at(self, path: str, **query: object) -> Answer:
        return self._conditional(self._url(path, query))

    def pages(self, path: str, key: str = "", **query: object) -> list[Json]:
        """Every row of every page; `key` names the list where the answer is an object."""
        url, found = self._url(path, {**query, "per_page": PER_PAGE}), list[Json]()
        for _ in range(MOST_PAGES):
            answer = self._conditional(url)
            found += answer.body[key] if key else answer.body
            if not answer.next:
                return found
            url = answer.next
        raise _lost(f"{path} has more than {MOST_PAGES} pages")

    def send(self, method: str, path: str, body: Json) -> Json:
        """A write: never repeated by itself, and not more than one a second."""
        with self._lock:
            wait = self._wrote + BETWEEN_WRITES - self.wires.elapsed()
            if wait > 0:
                self.wires.sleep(wait)
            try:
                return self._asked(method, self._url(path, {}), json=body).body
            finally:
                self._wrote = self.wires.elapsed()

    def graphql(self, query: str, **variables: object) -> Json:
        """Data, or Denied with GitHub's words; one forbidden field fails the whole query."""
        path = "graphql" if not self.api.endswith("/v3/") else "../graphql"
        url, body = urljoin(self.api, path), {"query": query, "variables": variables}
        answer = self._asked("POST", url, json=body).body
        if answer.get("errors"):
            raise Denied(200, str(answer["errors"][0].get("message", "no reason")))
        return answer["data"]

    def log(self, path: str) -> str:
        """A job's log: the address it leads to gets no token of ours, and is read up to a limit."""
        url = self._url(path, {})
        with self._lock:
            first = self._once("GET", url)
            if not first.has_redirect_location:
                return "" if first.status_code >= CLIENT_ERROR else first.text[-MOST_LOG:]
            where = urljoin(url, first.headers["location"])
            if urlsplit(where).scheme != "https" and not self._is_here(where):
                return ""
            try:
                return _log_at(self._client(), where)
            except httpx.HTTPError as error:
                raise _lost(str(error) or type(error).__name__) from error

    def close(self) -> None:
        if self._http is not None:
            self._http.close()
            self._http = None

    def silent_for(self, bucket: str = CORE) -> float:
        """Seconds until GitHub takes such requests again; 0 where it does."""
        until = max(self._silent_until.get(it, 0.0) for it in (ALL, bucket))
        return max(0.0, until - self.wires.elapsed())

    def budget(self, bucket: str = CORE) -> Budget:
        """By the server's clock only: ours may be wrong by hours."""
        it = self.buckets.get(bucket, Bucket())
        left = max(0.0, it.reset - it.at) if it.reset else FULL_AGAIN
        return Budget(limit=it.limit, remaining=it.remaining, left=left, paid=self.paid)

    def spare(self, bucket: str = CORE) -> bool:
        """Whether looking may go on; what is left then is for landing."""
        it = self.buckets.get(bucket, Bucket())
        return it.remaining > it.limit * RESERVE

    def _is_here(self, url: str) -> bool:
        """A server of this machine, as tests have one."""
        return urlsplit(url).hostname == urlsplit(self.api).hostname == "127.0.0.1"

    def _conditional(self, url: str) -> Answer:
        token = self.token()
        known = self._known.get(url)
        tagged = known is not None and known[1] == token  # ETags die with their token
        headers = {"If-None-Match": known[0]} if known and tagged else {}
        answer = self._asked("GET", url, headers=headers)
        if answer.status == NOT_MODIFIED and known:
            return Answer(200, known[2].body, known[2].next, answer.at)
        return answer

    def _asked(self, method: str, url: str, **given: Json) -> Answer:
        with self._lock:
            left = self.silent_for(GRAPHQL if url.endswith("/graphql") else CORE)
            if left:
                raise _lost(f"it asked to be left alone for {left:.0f} s")
            response = self._once(method, url, **given)
            self._counts(response)
            answer = _answer(response, url)
            self._remember(method, url, response, answer)
            return answer

    def _once(self, method: str, url: str, **given: Json) -> httpx.Response:
        headers = {
            "Authorization": f"Bearer {self.token()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": API,
            "User-Agent": "lockgate",
            **given.pop("headers", {}),
        }
        try:
            return self._client().request(method, url, headers=headers, **given)
        except httpx.HTTPError as error:
            raise _lost(str(error) or type(error).__name__) from error

    def _client(self) -> httpx.Client:
        if self._http is None:
            self._http = httpx.Client(
                transport=self.wires.transport,
                timeout=SECONDS,
                follow_redirects=False,
                limits=httpx.Limits(
                    max_keepalive_connections=0
                ),  # nothing stays open between looks
            )
        return self._http

    def _counts(self, response: httpx.Response) -> None:
        """The limit's headers of every answer; a refusal for too many is obeyed."""
        head = response.headers
        if "x-ratelimit-remaining" in head:
            self.buckets[head.get("x-ratelimit-resource", CORE)] = Bucket(
                int(head.get("x-ratelimit-limit", "5000")),
                int(head["x-ratelimit-remaining"]),
                float(head.get("x-ratelimit-reset", "0")),
                _server_time(response),
            )
        of_rest = head.get("x-ratelimit-resource", CORE) == CORE
        self.paid += of_rest and response.status_code != NOT_MODIFIED
        if not _is_limit(response):
            self._refusals = 0
            return
        self._refusals += 1
        spent = head.get("x-ratelimit-remaining") == "0"  # else it is the login that asks too much
        bucket, wait = head.get("x-ratelimit-resource", CORE), _wait(response, self._refusals)
        self._silent_until[bucket if spent else ALL] = self.wires.elapsed() + wait
        raise _lost(f"its limit is reached; it is asked again in {wait:.0f} s")

    def _remember(self, method: str, url: str, response: httpx.Response, answer: Answer) -> None:
        etag = response.headers.get("etag", "")
        if method == "GET" and etag and response.status_code != NOT_MODIFIED:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[url] = (etag, self.token(), answer)

    def _url(self, path: str, query: Mapping[str, object]) -> str:
        asked = {name: str(it) for name, it in query.items() if it not in {None, ""}}
        url = urljoin(self.api, path.lstrip("/"))
        return str(httpx.URL(url, params=asked)) if asked else url


def _answer(response: httpx.Response, url: str) -> Answer:
    status = response.status_code
    if status >= SERVER_ERROR:
        raise _lost(f"{status} at {urlsplit(url).path}")
    try:
        body = response.json() if response.content and status != NOT_MODIFIED else None
    except ValueError as error:
        raise _lost(f"its answer at {urlsplit(url).path} is cut off") from error
    if status >= CLIENT_ERROR:
        words = str(reading.table(body).get("message", ""))
        raise Denied(status, f"{words} ({urlsplit(url).path})", _server_time(response))
    following = response.links.get("next", {}).get("url", "")
    return Answer(status, body, following, _server_time(response))


def _is_limit(response: httpx.Response) -> bool:
    head = response.headers
    if response.status_code == TOO_MANY:
        return True
    if response.status_code != FORBIDDEN:
        return False
    spent = head.get("x-ratelimit-remaining") == "0" or "retry-after" in head
    return spent or "rate limit" in response.text.lower()


def _wait(response: httpx.Response, refusals: int) -> float:
    """`retry-after`, else until the limit is full again, else a minute that doubles."""
    head = response.headers
    if head.get("retry-after", "").isdecimal():
        return min(float(head["retry-after"]), LONGEST_WAIT)
    left = float(head.get("x-ratelimit-reset", "0")) - _server_time(response)
    if head.get("x-ratelimit-remaining") == "0" and left > 0:
        return min(left + 1, LONGEST_WAIT)
    return min(FIRST_WAIT * 2.0 ** (refusals - 1), LONGEST_WAIT)


def _server_time(response: httpx.Response) -> float:
    try:
        return parsedate_to_datetime(response.headers.get("date", "")).timestamp()
    except (TypeError, ValueError):
        return 0.0


def _log_at(http: httpx.Client, where: str) -> str:
    """At most so many bytes of it: of a longer one the end, where a failure stands."""
    plain = {"Accept-Encoding": "identity"}  # else a length is that of something else
    with http.stream("GET", where, headers=plain) as whole:
        told = whole.headers.get("content-length", "")
        length = int(told) if told.isdecimal() else 0
        if length <= MOST_LOG:
            return _read(whole)
    end = {**plain, "Range": f"bytes={length - MOST_LOG}-"}
    with http.stream("GET", where, headers=end) as rest:
        return _read(rest)


def _read(response: httpx.Response) -> str:
    if response.status_code >= CLIENT_ERROR:
        return ""
    data = b"".join(_capped(response.iter_bytes()))
    whole = len(data) <= MOST_LOG or response.status_code == PARTIAL
    return data[:MOST_LOG].decode("utf-8", "replace") + ("" if whole else CUT)


def _capped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    left = MOST_LOG + 1
    for chunk in chunks:
        yield chunk[:left]
        left -= len(chunk)
        if left <= 0:
            return


def _lost(why: str) -> Unavailable:
    return Unavailable(
        "GitHub was not asked, or did not answer", why=why, fix="it is tried again by itself"
    )
