"""Which versions of Lockgate are at work in a home, and what a mismatch means."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

RESTART = "lockgate down, then lockgate up; agents keep working"


class Versions(Struct, frozen=True, kw_only=True):
    """`orchestrator` is None where none runs; a runner that says no version is older than that."""

    program: str
    orchestrator: str | None
    runners: Mapping[str, str]  # by session
    schema: int  # of the database
    known: int  # the newest that the program knows


class Mismatch(Struct, frozen=True):
    """What differs and what it means; what to do, or nothing where it ends by itself."""

    what: str
    fix: str = ""


def mismatches(it: Versions) -> Iterator[Mismatch]:
    if it.orchestrator is not None and it.orchestrator != it.program:
        other = it.orchestrator or "an older one"
        yield Mismatch(f"the orchestrator is version {other}, and this is {it.program}", RESTART)
    if it.schema > it.known:
        what = f"the database has version {it.schema} of the schema, and this program knows"
        yield Mismatch(f"{what} {it.known}", "upgrade this program")
    older = sorted(id for id, version in it.runners.items() if version != it.program)
    if older:
        named = ", ".join(f"{id} ({it.runners[id] or 'no version'})" for id in older)
        yield Mismatch(f"sessions under a runner of another version, until they end: {named}")
