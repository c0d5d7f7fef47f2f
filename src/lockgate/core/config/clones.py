"""Which project of a server a clone on another machine belongs to: by its origin, or by name."""

from collections.abc import Sequence

from msgspec import Struct

from lockgate.core.config.trust import origin_of

SHOWN = 10  # projects that a refusal names


class Clone(Struct, frozen=True, kw_only=True):
    """What a laptop tells of the clone it is in; `project` is one that its user names."""

    origin: str = ""
    name: str = ""
    project: str = ""


class Held(Struct, frozen=True, kw_only=True):
    """A project of the server: where it lies, and where it was cloned from."""

    root: str
    name: str
    id: str = ""
    origin: str = ""


class Unclear(Struct, frozen=True):
    why: str
    fix: str


def meant(clone: Clone, held: Sequence[Held]) -> Held | Unclear:
    """By the name that a user gives; else by the origin; by the clone's name where it has none.

    A project with an origin of its own is not taken for a clone of another origin.
    """
    if clone.project:
        found = [it for it in held if clone.project in {it.name, it.id, it.root}]
        return _one(found, f"called {clone.project!r}", held)
    if not clone.origin and not clone.name:
        why = "the directory that you are in is in no git repository"
        return Unclear(why, f"change into your clone, or set LOCKGATE_PROJECT to {_named(held)}")
    same = [it for it in held if _is_from(clone.origin, it)]
    if same:
        return _one(same, f"cloned from {_without_user(clone.origin)}", held)
    if clone.origin:
        called = _last(clone.origin)
        found = [it for it in held if it.name == called and not it.origin]
        return _one(found, f"cloned from {_without_user(clone.origin)}", held)
    return _one([it for it in held if it.name == clone.name], f"called {clone.name!r}", held)


def _one(found: Sequence[Held], how: str, held: Sequence[Held]) -> Held | Unclear:
    match found:
        case [it]:
            return it
        case []:
            fix = "ask an admin to add it to projects of [server], or set LOCKGATE_PROJECT"
            return Unclear(f"the server has no project {how}", f"{fix}: {_named(held)}")
        case several:
            roots = ", ".join(it.root for it in several)
            return Unclear(
                f"several projects of the server are {how}",
                f"set LOCKGATE_PROJECT to one of: {roots}",
            )


def _without_user(url: str) -> str:
    """What a message shows: laptops of older versions send the password in the url too."""
    scheme, found, rest = url.partition("://")
    if not found:
        return url
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def _is_from(origin: str, held: Held) -> bool:
    """Also where the clone came from the server's own repository, or both from a path there."""
    if not origin:
        return False
    ours, theirs = origin_of(held.origin), origin_of(origin)
    if ours and theirs:
        return ours == theirs
    places = {_bare(it) for it in (held.origin, held.root) if _bare(it).startswith("/")}
    path = f"/{theirs.partition('/')[2]}" if theirs else _bare(origin)
    return path in places


def _bare(path: str) -> str:
    short = path.removeprefix("file://").removesuffix("/").removesuffix(".git")
    return short.removesuffix("/")


def _last(origin: str) -> str:
    return _bare(origin).replace(":", "/").rpartition("/")[2]


def _named(held: Sequence[Held]) -> str:
    return ", ".join(it.name for it in held[:SHOWN]) or "none is there yet"
