"""Who a commit is by, and the trailers that it carries."""

from enum import StrEnum

from msgspec import Struct


class Author(StrEnum):
    """`[commit] author`: whose name an agent's work carries."""

    USER = "user"
    AGENT = "agent"


class Person(Struct, frozen=True):
    name: str = ""
    email: str = ""

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


NOBODY = Person()
TASK_TRAILER = "Lockgate-Task"  # names the task of a commit that lands
LOCKGATE = Person("Lockgate", "lockgate@localhost")  # where nobody else is known
_CLAUDE = Person("Claude", "noreply@anthropic.com")  # as its program writes it
_KNOWN = {"claude": _CLAUDE, "claude-live": _CLAUDE}


class Byline(Struct, frozen=True):
    author: Person
    committer: Person
    trailers: tuple[str, ...] = ()


def agent_person(agent: str) -> Person:
    return _KNOWN.get(agent) or Person(agent, f"{agent}@localhost")


def byline(user: Person, agent: str, author: Author, *, signoff: bool = False) -> Byline:
    """Of an agent's work; where the user's git has no name or no address, the agent's is taken."""
    worker = agent_person(agent)
    person = Person(user.name or worker.name, user.email or worker.email)
    by = worker if author is Author.AGENT else person
    trailers = () if by == worker else (f"Co-authored-by: {worker}",)
    if signoff and user.name and user.email:
        trailers = (*trailers, f"Signed-off-by: {user}")
    return Byline(by, person, trailers)


def with_trailers(message: str, trailers: tuple[str, ...]) -> str:
    """Behind those that it ends with already, each once."""
    words = message.rstrip("\n")
    new = [it for it in trailers if it not in words.splitlines()]
    if not new:
        return f"{words}\n"
    _, gap, last = words.rpartition("\n\n")
    follows = bool(gap) and all(map(_is_trailer, last.splitlines()))
    return words + ("\n" if follows else "\n\n") + "\n".join(new) + "\n"


def _is_trailer(line: str) -> bool:
    key, colon, _ = line.partition(": ")
    return bool(colon) and " " not in key


def person_in(identity: str) -> Person | None:
    """`Name <address>` as two; None where it is nothing of the kind."""
    name, found, rest = identity.partition(" <")
    email, end, after = rest.partition(">")
    good = found and end and not after and name.strip() and email and "<" not in email
    return Person(name.strip(), email) if good else None


SIGN = (
    "make this work without a question: git commit -S --allow-empty,"
    " or: git config commit.gpgsign false"
)


def unsigned(why: str) -> str:
    return f"commit.gpgsign is set, and git could not sign a commit: {why}"
