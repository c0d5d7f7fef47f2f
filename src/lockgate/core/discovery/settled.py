"""What `init` does after a run on base: try again with a repair, leave out, or call it ready."""

import re

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.baseline import Baseline, Colour
from lockgate.core.discovery.found import Package, Plan, Seen, Tree, gate_name
from lockgate.core.discovery.repairs import Ran, repaired, without_red

_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable"
    r"|nodename nor servname|getaddrinfo|ENOTFOUND|EAI_AGAIN|ENETUNREACH|Could not resolve host"
    r"|no such host|dial tcp",
    re.IGNORECASE,
)


class Tried(Struct, frozen=True, kw_only=True):
    """One command on base, as it was run last: how many tests, which of them were left out.

    `broke` is the file that was broken for a trial, `noticed` whether the command turned red.
    `faults` is how often that was seen, of `wanted` times.
    """

    baseline: Baseline
    total: int = 0
    red: int = 0
    networked: bool = False
    late: bool = False
    broke: str = ""
    noticed: bool = False
    faults: int = 0
    wanted: int = 1

    @property
    def ready(self) -> bool:
        return self.baseline.colour is Colour.GREEN and self.noticed


def next_try(package: Package, ran: Ran, tree: Tree) -> Package | None:
    """A repair, else the command without what fails on base; None where it stays as it is."""
    if ran.late:
        return None
    return repaired(package, ran, tree) or without_red(package, ran, tree)


def left_out(package: Package, kind: str, why: str) -> Package:
    """Without that command, and with a note of it: somebody may want it back."""
    seen = package.test if kind == "tests" else package.typecheck
    note = f"Left out: {gate_name(kind, package)}, `{seen.command if seen else ''}`: {why}"
    notes = (*package.notes, note)
    if kind == "tests":
        return replace(package, test=None, notes=notes)
    return replace(package, typecheck=None, notes=notes)


def without_idle(packages: tuple[Package, ...]) -> tuple[Package, ...]:
    """A package of several that has no command left is not set up: that may be what fails."""
    if len(packages) == 1:
        return packages
    return tuple(
        it if it.test or it.typecheck else replace(it, setup=None, adds=(), inputs=())
        for it in packages
    )


def needs_network(ran: Ran) -> bool:
    return bool(_NETWORK.search(ran.said) or any(_NETWORK.search(it.message) for it in ran.failing))


def held(package: Package, ran: Ran, base: str) -> Package:
    """With a note of the tests that are left out."""
    if not package.red:
        return package
    count, total = len(package.red), len(package.red) + ran.total
    rest = f"changes are held to the other {ran.total}"
    note = f"{count} of {total} tests fail on {base} already; {rest}."
    return replace(package, notes=(*package.notes, note))


def asked_for(plan: Plan, test: str, setup: str) -> Plan:
    """With the commands that a human named, which are for the top."""
    if not test and not setup:
        return plan
    top = plan.packages[0] if plan.packages and not plan.packages[0].path else Package()
    if test:
        top = replace(top, test=Seen(test, "--test-command"), red=(), others=())
    if setup:
        top = replace(top, setup=Seen(setup, "--setup"), adds=())
    return Plan((top,))


def doubtful(plan: Plan) -> tuple[Seen, ...] | None:
    """Commands to choose from, where none is known to test this; None where one is."""
    if any(it.test for it in plan.packages):
        return None
    return tuple(other for it in plan.packages for other in it.others)


def told(plan: Plan) -> dict[str, str]:
    """What was found, for people."""
    found: dict[str, str] = {}
    for package in plan.packages:
        where = f"{package.path}: " if package.path else ""
        parts = {"test": package.test, "typecheck": package.typecheck}
        set_up = Seen(package.set_up, package.setup.by if package.setup else "what is missing")
        for key, seen in (*parts.items(), ("setup", set_up if set_up.command else None)):
            found[f"{where}{key}"] = f"{seen.command} (seen by {seen.by})" if seen else "not found"
    return found
