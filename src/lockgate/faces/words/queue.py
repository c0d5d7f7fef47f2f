"""What people read of the merge queue: who waits, why, and what judged a commit that landed."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from lockgate.core.lifecycle.needs import large_change
from lockgate.core.model.task import Status, Task
from lockgate.core.text.steering import steering, told_of
from lockgate.faces.words.task import SHORT, approval_text, one_line, table, word_of
from lockgate.services.task.page import TaskPage, queued

if TYPE_CHECKING:  # a task is shown without loading the train
    from lockgate.services.train.control import Clash, Listing, Row, Verified

LANDING = "landing"
RAN = 90  # characters of what a gate ran
IN_LOG = "in this home's log"
NOT_IN_LOG = "not in this home's log; the note alone says so"

Facts = Mapping[str, object]


def queue_text(seen: "Listing", holds: Sequence[str]) -> str:
    target, merge = seen.train.target, seen.train.settings.merge
    name = f"{target.remote}/{target.branch}" if target.remote else target.branch
    told = f"{one_line(name)} at {seen.train.tip.commit[:SHORT]}"
    lines = [f"{told}: {merge.mode} landing by {merge.strategy}, window {merge.window}"]
    lines += [f"nothing lands now: {one_line(why)}" for why in holds]
    if not seen.rows:
        return "\n".join([*lines, "nothing waits to land"])
    head = ("#", "TASK", "STANDING", "PRIORITY", "SUMMARY")
    cells = [_cells(number, row) for number, row in enumerate(seen.rows, start=1)]
    lines += [table([head, *cells])]
    return "\n".join([*lines, *clash_lines(seen.clashes)])


def queue_facts(seen: "Listing", holds: Sequence[str]) -> Facts:
    train, merge = seen.train, seen.train.settings.merge
    return {
        "target": {
            "branch": train.target.branch,
            "remote": train.target.remote or None,
            "tip": train.tip.commit,
            "tree": train.tip.tree,
            "config_hash": train.rules.config_hash,
        },
        "mode": merge.mode,
        "strategy": merge.strategy,
        "window": merge.window,
        "batch": merge.batch,
        "holds": list(holds),
        "changes": [_row_facts(number, row) for number, row in enumerate(seen.rows, start=1)],
        "conflicts": clash_facts(seen.clashes),
    }


def clash_lines(clashes: "Sequence[Clash]") -> list[str]:
    return [_clash(it) for it in clashes]


def clash_facts(clashes: "Sequence[Clash]") -> list[Facts]:
    return [{"tasks": [it.one, it.other], "files": list(it.files)} for it in clashes]


def steered_text(task: Task) -> str:
    """Where it stands once a human has spoken."""
    if task.status is not Status.REVIEWING:
        return f"{task.id} is {word_of(task)} again; its agent gets your message"
    if task.held:
        return f"{task.id} is held: {one_line(task.held)}"
    large = f" ({large_change(task)})" if large_change(task) else ""
    change = f"change {task.patch[:SHORT]}{large}"
    steers = f"\n{one_line(told_of(files))}" if (files := steering(task.protected)) else ""
    return f"{task.id} is in the queue, {change}; see: lockgate queue list{steers}"


def undone_text(task: Task) -> str:
    """What becomes of the task that reverts another one."""
    reverts = task.reverts
    whose = f"{task.id} reverts task {reverts.task}" if reverts else task.id
    if reverts and reverts.unjudged:
        return f"{whose}; no gate judges it, and it lands at once where the target is red"
    if reverts and reverts.commit:
        return f"{whose}; the revert is made, and its gates judge it now"
    return f"{whose}; agent {task.agent} makes the revert"


def queue_lines_of(seen: TaskPage) -> list[tuple[str, str]]:
    """What a task's page says of the queue."""
    task, told = seen.task, queued(seen.task)
    why = f": {one_line(task.held)}" if told == "held" else ""
    landed = task.status is Status.DONE and task.landed
    return [
        *((("queue", told + why),) if told else ()),
        *((("landed as", task.landed[:SHORT]),) if landed else ()),
        *(
            ("conflicts", f"with {it.task} ({one_line(it.summary)}) in {_files(it.files)}")
            for it in seen.conflicts
        ),
    ]


def evidence_text(found: "Verified") -> str:
    evidence = found.evidence
    rows = [
        ("commit", found.commit),
        ("tree", _said(evidence, "tree")),
        ("onto", f"{_said(evidence, 'onto')} of {_said(evidence, 'target')}"),
        ("landing", IN_LOG if found.in_log else NOT_IN_LOG),
        ("rules", f"configuration {_said(evidence, 'config_hash')[:SHORT]}"),
        *(("tested by", _gate(it)) for it in _listed(evidence, "train")),
    ]
    for change in _listed(evidence, "changes"):
        rows += _change_rows(change)
    return table([(f"{name}:", value) for name, value in rows])


def _change_rows(change: Facts) -> list[tuple[str, str]]:
    cost = f"{change.get('usd', 0)} USD, {change.get('tokens', 0)} tokens"
    return [
        ("change", f"{_said(change, 'task')}: {_said(change, 'summary')}"),
        *(("  reverts", f"task {_said(change, 'reverts')}") for _ in [1] if "reverts" in change),
        ("  commit", f"{_said(change, 'change')}, patch {_said(change, 'patch')[:SHORT]}"),
        ("  rules", f"configuration {_said(change, 'config_hash')[:SHORT]}"),
        *(("  passed", _gate(it)) for it in _listed(change, "gates")),
        *(("  reviewer", one_line(str(it))) for it in _items(change, "reviewers")),
        *(("  approval", approval_text(it)) for it in _listed(change, "approvals")),
        ("  cost", cost),
    ]


def _gate(result: Facts) -> str:
    proof = result.get("proof")
    told: Facts = cast("Facts", proof) if isinstance(proof, Mapping) else {}
    ran = one_line("; ".join(map(str, _items(told, "ran"))))
    tree = _said(told, "tree")[:SHORT]
    where = f", tree {tree}" if tree else ""
    return f"{_said(result, 'gate')}{where}: {textwrap.shorten(ran or 'nothing ran', RAN)}"


def _cells(number: int, row: "Row") -> tuple[str, ...]:
    task, place = row.task, row.place
    asked = place.standing == "held" and not task.held
    word = LANDING if task.landed else "waits for approval" if asked else str(place.standing)
    why = f"  [{one_line(place.why)}]" if place.why else ""
    return str(number), task.id, word, str(task.priority), one_line(task.summary) + why


def _row_facts(number: int, row: "Row") -> Facts:
    task, place = row.task, row.place
    return {
        "position": number,
        "task": task.id,
        "summary": task.summary,
        "standing": LANDING if task.landed else place.standing,
        "why": place.why,
        "priority": task.priority,
        "change": task.candidate,
        "patch": task.patch,
        "approved": task.to_land,
        "steering": list(steering(task.protected)),
    }


def _clash(it: "Clash") -> str:
    return f"{it.one} and {it.other} would conflict in {_files(it.files)}"


def _files(files: Sequence[str]) -> str:
    return ", ".join(map(one_line, files)) or "all they have: no history in common"


def _said(facts: Facts, key: str) -> str:
    return one_line(str(facts.get(key, "")))


def _items(facts: Facts, key: str) -> list[object]:
    found = facts.get(key)
    return cast("list[object]", found) if isinstance(found, list) else []


def _listed(facts: Facts, key: str) -> list[Facts]:
    return [cast("Facts", it) for it in _items(facts, key) if isinstance(it, Mapping)]
