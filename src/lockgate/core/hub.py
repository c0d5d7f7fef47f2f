"""The hub of a project: which refs it holds for whom, what may go, whether it will do as one.

A hub is one bare repository by which the hosts of a fleet hand commits to each other.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from lockgate.core.config.trust import origin_of

Refs = Mapping[str, str]  # name → commit

SNAPSHOTS = "refs/lockgate/snapshots"  # every change that a task had: task, then commit
CHANGES = "refs/lockgate/changes"  # the newest of each generation of a task
PUBLISHED = "refs/lockgate/published"  # what a task's branch was set to: task, then commit
TRAIN = "refs/lockgate/train"  # candidates: target, then commit
TRIAL = "refs/lockgate/trial"  # what `fleet check` pushes and takes away again
OF_TASKS = (SNAPSHOTS, CHANGES, PUBLISHED)

_SCHEMES = ("ssh", "https")
_URL = re.compile(r"([a-z+.-]*)://(?:[^/@:]*(:[^/@]*)?@)?[^/@\s]+/\S+")
_LIKE_SCP = re.compile(r"(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9_.-]+:(?!/?/)[^\s:][^\s]*")


def snapshot_ref(task: str, commit: str) -> str:
    return f"{SNAPSHOTS}/{task}/{commit}"


def change_ref(task: str, generation: int) -> str:
    """By generation: what a worker pushes that was given up is nobody's start."""
    return f"{CHANGES}/{task}/{generation}"


def published_ref(task: str, commit: str) -> str:
    return f"{PUBLISHED}/{task}/{commit}"


def handed_over(task: str, generation: int, commit: str) -> Refs:
    """What names a task's work at the hub, before any turn names it."""
    return {snapshot_ref(task, commit): commit, change_ref(task, generation): commit}


def newest_change(refs: Refs, task: str, generation: int) -> str | None:
    """From where a worker of this generation goes on; None where nobody has handed work over."""
    root = f"{CHANGES}/{task}/"
    numbers = {ref.removeprefix(root): it for ref, it in refs.items() if ref.startswith(root)}
    known = {int(it): at for it, at in numbers.items() if it.isdecimal() and int(it) <= generation}
    return known[max(known)] if known else None


def tasks_in(refs: Iterable[str]) -> tuple[str, ...]:
    """The tasks that have refs there, each once."""
    named = (it.removeprefix(f"{root}/") for it in refs for root in OF_TASKS if _below(it, root))
    return tuple(dict.fromkeys(it.partition("/")[0] for it in named))


def refs_of(refs: Iterable[str], task: str) -> tuple[str, ...]:
    return tuple(it for it in refs if any(_below(it, f"{root}/{task}") for root in OF_TASKS))


def without(refs: Iterable[str], keep: Iterable[str]) -> tuple[str, ...]:
    """Those that end in none of these commits."""
    kept = set(keep)
    return tuple(it for it in refs if it.rpartition("/")[2] not in kept)


def _below(ref: str, root: str) -> bool:
    return ref.startswith(f"{root}/")


# Whether an address will do, and a hub that was tried.


class Reach(StrEnum):
    PATH = "path"  # only hosts of one machine have it
    NET = "net"


class Unfit(Struct, frozen=True):
    """Why an address is none of a hub."""

    why: str
    fix: str


def reach_of(url: str) -> Reach | Unfit:
    if not url.isprintable() or url.startswith("-") or "::" in url:
        return Unfit("it is no address of a repository", _FORMS)
    if url.startswith("/"):
        return Reach.PATH
    if "://" not in url:
        return Reach.NET if _LIKE_SCP.fullmatch(url) else Unfit("it is no whole path", _FORMS)
    parts = _URL.fullmatch(url)
    if parts is None or parts[1] not in _SCHEMES:
        return Unfit(f"{url.partition('://')[0]}:// is not taken so", _FORMS)
    if parts[2]:
        why = "it has a password in it, which everyone who reads the database would see"
        return Unfit(why, "leave it to git's credential helper on each host")
    return Reach.NET


def is_of(origin: str, url: str) -> bool:
    """Whether a clone with that origin is one of this hub, by whichever way it came."""
    if not origin:
        return False
    one, other = origin_of(origin), origin_of(url)
    return one == other if one and other else origin.rstrip("/") == url.rstrip("/")


_FORMS = "write /a/path, user@host:path, ssh://user@host/path or https://host/path"


class Tried(Struct, frozen=True, kw_only=True):
    """What came of the trial, in git's words; each is empty where it went well."""

    read: str = ""  # its refs were listed
    branches: int = 0
    pushed: str = ""  # two refs below refs/lockgate were set at once, and are seen there
    refused: bool = True  # a push with one stale lease moved neither of its refs
    removed: str = ""


class Finding(Struct, frozen=True, kw_only=True):
    """Where `ok` has a why, people are told of it too: it works, with a limit."""

    ok: bool
    what: str
    why: str = ""
    fix: str = ""

    @property
    def text(self) -> str:
        why, fix = (f": {self.why}" if self.why else ""), (f" ({self.fix})" if self.fix else "")
        return f"{self.what}{why}{fix}"


def judged(url: str, tried: Tried, *, fenced: bool) -> tuple[Finding, ...]:
    """What `fleet check` says of a hub; `fenced` where landings rely on the ref beside a branch."""
    reach = reach_of(url)
    if isinstance(reach, Unfit):
        return (_bad(f"the hub {url} is not used", reach.why, reach.fix),)
    if tried.read:
        fix = "see that this host may read it: git ls-remote, as the user who runs the worker"
        return (_bad(f"the hub {url} did not answer", tried.read, fix),)
    found = [Finding(ok=True, what=f"the hub {url} answers", why=_where(reach))]
    if not tried.branches:
        why, fix = "it has no branch yet", f"push the base branch: git push {url} main"
        found.append(_bad("nothing can start there", why, fix))
    return (*found, _atomic(tried, fenced=fenced), *_left(tried))


def _atomic(tried: Tried, *, fenced: bool) -> Finding:
    if not tried.pushed and tried.refused:
        what = "it takes refs/lockgate, and two refs at once or neither"
        return Finding(ok=True, what=what, why="" if fenced else _WEAKER)
    why = tried.pushed or "a push of two refs moved one of them, though the other was refused"
    if "atomic" in why and not fenced:
        weaker = 'fence = "wait" is in use and weaker: a new leader waits for old pushes to end'
        return Finding(ok=True, what=f"it moves refs one by one; {weaker}", why=why)
    fix = 'let this host push refs/lockgate/*; without atomic pushes set fence = "wait"'
    return _bad("no landing is safe there", why, fix)


def _left(tried: Tried) -> tuple[Finding, ...]:
    fix = f"let this host delete refs below refs/lockgate, then: git push --delete HUB {TRIAL}/…"
    return (_bad("the refs of the trial were not removed", tried.removed, fix),) * bool(
        tried.removed
    )


_WEAKER = 'fence = "wait" is in use, which is weaker: set fence = "ref" on all hosts'


def _where(reach: Reach) -> str:
    return "only hosts of this machine reach a path" if reach is Reach.PATH else ""


def _bad(what: str, why: str, fix: str) -> Finding:
    return Finding(ok=False, what=what, why=why, fix=fix)
