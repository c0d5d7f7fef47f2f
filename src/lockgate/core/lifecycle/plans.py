"""A plan: several tasks that are made together, some of which wait for others."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lockgate.core.lifecycle.records import Unacceptable
from lockgate.core.model.dag import Cycle, TaskDAG, UnknownNode

MOST = 50  # tasks of one plan


def ordered(
    names: Sequence[str], branches: Sequence[str], after: Mapping[str, Iterable[str]]
) -> tuple[str, ...] | Unacceptable:
    """The names of a plan so that each stands behind those it waits for, or what is wrong.

    `after` has, for each name, the other names of the plan that it waits for.
    """
    if not names:
        return Unacceptable("it has no task", "name at least one: summary = ...")
    if len(names) > MOST:
        return Unacceptable(f"it has {len(names)} tasks, {MOST} are allowed", "make two plans")
    problem = _twice("name", names) or _twice("branch", branches)
    if problem:
        return problem
    found = TaskDAG[str].of(after)
    if isinstance(found, Cycle):
        told = " waits for ".join(found.path)
        return Unacceptable(f"its tasks wait for each other: {told}", "take one of these out")
    if isinstance(found, UnknownNode):
        why = f"{found.node} waits for {found.named}, which it does not have"
        return Unacceptable(why, "name a task")
    return found.order


def _twice(what: str, values: Sequence[str]) -> Unacceptable | None:
    found = next((it for it, count in Counter(values).items() if count > 1), None)
    if found is None:
        return None
    return Unacceptable(f"two of its tasks have the {what} {found!r}", f"give each its own {what}")
