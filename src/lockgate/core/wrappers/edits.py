"""Which of what a gate runs a change edits, and what follows from it.

Base's version of it must agree with the change's own, in a run of its own, and a human is asked.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.results import Broken, Failed, Passed, SingleGateResult, Waiting
from lockgate.core.wrappers import sections
from lockgate.core.wrappers.entries import THERE, Entry, Kind, entries
from lockgate.core.wrappers.makefiles import Read

AGAIN = 5  # times that wrappers behind wrappers are looked for
SHOWN = 20  # tests, or edits, that a text names
LONGEST = 4000  # characters of what a run said
REMEDY = "leave what the gate runs as it is on base; a change of it alone shows whether it agrees"


class Edit(Struct, frozen=True):
    """An entry that both sides do not have alike; as the change has it, else as base has it."""

    entry: Entry
    how: str

    @property
    def said(self) -> str:
        return f"{self.how} {self.entry.name}"


def edits(command: str, base: Read, change: Read) -> tuple[Edit, ...]:
    """All that the change edits of what the command resolves to, in the order of paths.

    What base's wrapper leads to is looked at too: with it in its place again, the command resolves
    to what it does on base.
    """
    found: dict[tuple[str, str], Edit] = {}
    read, left = change, AGAIN
    while left:
        more = {(it.entry.path, it.entry.name): it for it in _edits(command, base, read)}
        left = 0 if more.keys() <= found.keys() else left - 1
        found = {**more, **found}
        read = mixed(laid(tuple(found.values()), base, change), base, change)
    return tuple(found[it] for it in sorted(found))


def mixed(it: "Laid", base: Read, change: Read) -> Read:
    """Reads the change's tree with base's wrappers in it."""
    directories = tuple(path for path in it.drop if path.endswith("/"))

    def read(path: str) -> str | None:
        if path in it.drop or path.startswith(directories):
            return None
        return it.written.get(path) or (base if path in it.take else change)(path)

    return read


def _edits(command: str, base: Read, change: Read) -> tuple[Edit, ...]:
    """What differs of all that the command resolves to on either side.

    What only one side leads to counts where the other has not the same: that the way there is
    another one is an edit of its own. Parts of a Makefile count so only where no part is edited.
    """
    old = {(it.path, it.name): it for it in entries(command, base)}
    new = {(it.path, it.name): it for it in entries(command, change)}
    both = [new[it] for it in sorted(old.keys() & new.keys()) if old[it].text != new[it].text]
    edited = {it.path for it in both if it.kind is Kind.TARGET}
    gone = (old[it] for it in sorted(old.keys() - new.keys()))
    left = [(it, change, "removes") for it in gone if it.kind is not Kind.PLACE]
    left += [(new[it], base, "adds") for it in sorted(new.keys() - old.keys())]
    found = [Edit(it, "edits") for it in both]
    for entry, read, how in left:
        there = _text_at(entry, read)
        known = base(entry.path) == change(entry.path) or there == entry.text
        if not known and not (entry.kind is Kind.TARGET and entry.path in edited):
            found.append(Edit(entry, how if there is None else "edits"))
    return tuple(found)


def _text_at(entry: Entry, read: Read) -> str | None:
    """What a side has in an entry's place, reached or not; None where it has nothing there."""
    text = read(entry.path)
    if text is None or entry.kind is Kind.FILE:
        return text
    if entry.kind is Kind.PLACE:
        return THERE
    if entry.kind in {Kind.SCRIPT, Kind.KEY}:
        package = sections.package_of(text)
        return next(iter(_parts(entry, package)), None)
    if entry.kind is Kind.SECTION and not entry.path.endswith(".toml"):
        return sections.ini_part(text, entry.part) or None
    if entry.kind is Kind.SECTION:
        return sections.toml_part(text, *entry.part[0].split(".")) or None
    return None


def _parts(entry: Entry, package: Mapping[str, object]) -> Iterator[str]:
    if entry.kind is Kind.SCRIPT:
        scripts = sections.scripts_of(package)
        yield from (scripts[it] for it in entry.part if it in scripts)
    else:
        yield from (repr(package[it]) for it in entry.part if it in package)


class Laid(Struct, frozen=True, kw_only=True):
    """How base's wrappers come into the change's tree: files taken, taken out, written.

    What is taken out may be a directory, with a `/` at its end.
    """

    take: tuple[str, ...]
    drop: tuple[str, ...]
    written: dict[str, str]


def laid(found: Sequence[Edit], base: Read, change: Read) -> Laid:
    take, drop, written = list[str](), list[str](), dict[str, str]()
    for path in sorted({it.entry.path for it in found}):
        here = [it.entry for it in found if it.entry.path == path]
        old, new = base(path), change(path)
        mixed = all(it.kind in {Kind.SCRIPT, Kind.KEY, Kind.SECTION} for it in here)
        if old is None:
            drop.append(path)
        elif new is None or not mixed:
            take.append(path)
        else:
            written[path] = _mixed(here, old, new)
    return Laid(take=tuple(take), drop=tuple(drop), written=written)


def _mixed(here: Sequence[Entry], old: str, new: str) -> str:
    """The change's file with base's parts in it; base's file where that cannot be made."""
    if here[0].kind is not Kind.SECTION:
        scripts = frozenset(it for e in here if e.kind is Kind.SCRIPT for it in e.part)
        keys = frozenset(it for e in here if e.kind is Kind.KEY for it in e.part)
        return sections.with_keys(new, old, scripts, keys)
    names = tuple(dict.fromkeys(it for e in here for it in e.part))
    text = sections.with_sections(new, old, names)
    if not here[0].path.endswith(".toml"):
        return text
    keys_of = [it.split(".") for it in names]
    same = all(sections.toml_part(text, *it) == sections.toml_part(old, *it) for it in keys_of)
    return text if same else old


def agreed(own: Passed, base: SingleGateResult, found: Sequence[Edit]) -> SingleGateResult:
    """The gate's result, from the run with the change's wrapper and the one with base's."""
    match base:
        case Passed(_, proof, _):
            lost = _lost(own.proof.tests_passed, proof.tests_passed)
            return _failed(own, found, lost) if lost else _asking(own, base, found)
        case Failed(_, findings):
            said = "\n".join(it.issue for it in findings[:SHOWN])[:LONGEST]
            return _failed(own, found, f"with base's it fails:\n{said}")
        case Broken(_, why, passing):
            told = f"{edited(found)}; base's version of it could not judge: {why}"
            return Broken(own.gate, told, passing)
        case Waiting(_, why):
            return Broken(own.gate, f"{edited(found)}; base's version of it could not judge: {why}")


def asking(result: SingleGateResult, found: Sequence[Edit]) -> SingleGateResult:
    """A pass that wants a human to see these files."""
    if not isinstance(result, Passed) or not found:
        return result
    files = tuple(dict.fromkeys((*result.asks, *(it.entry.path for it in found))))
    return replace(result, asks=files)


def question(by_gate: Mapping[str, Sequence[Edit]]) -> str:
    """What a human reads of it; empty where nothing is edited. Gates that run the same are one."""
    gates: dict[str, list[str]] = {}
    for name, found in by_gate.items():
        if found:
            gates.setdefault(_named(found), []).append(name)
    said = (
        f"the change edits what gate {' and '.join(it)} runs: {what}" for what, it in gates.items()
    )
    return "; ".join(said)


def edited(found: Sequence[Edit]) -> str:
    return f"the change edits what this gate runs: {_named(found)}"


def _asking(own: Passed, base: Passed, found: Sequence[Edit]) -> SingleGateResult:
    noted = tuple(
        Finding(
            Priority.P2_MINOR,
            f"the change {it.said}, which this gate runs; base's version passes too",
            Location(it.entry.path),
        )
        for it in found[:SHOWN]
    )
    proof = replace(
        own.proof,
        ran=(*own.proof.ran, *(f"{it} (with base's {_named(found)})" for it in base.proof.ran)),
        seconds=own.proof.seconds + base.proof.seconds,
    )
    return asking(Passed(own.gate, proof, (*own.findings, *noted)), found)


def _failed(own: Passed, found: Sequence[Edit], how: str) -> Failed:
    text = f"{edited(found)}. With the change's version the command passes, {how}"
    first = Location(found[0].entry.path) if found else None
    return Failed(own.gate, (Finding(Priority.P0_CRITICAL, text, first, REMEDY),))


def _lost(own: tuple[str, ...] | None, base: tuple[str, ...] | None) -> str:
    """The tests that pass with base's wrapper and are not reported to pass with the other."""
    lost = [it for it in base or () if it not in set(own or ())]
    more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
    return f"but does not report that these pass: {', '.join(lost[:SHOWN])}{more}" if lost else ""


def _named(found: Sequence[Edit]) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(it.entry.name for it in found[:SHOWN]) + more
