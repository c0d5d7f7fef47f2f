"""Tasks that wait to land, as the planner sees them, and what gates say of a tree."""

import pytest
from msgspec.structs import replace

from lockgate.core.config.settings import MergeMode, Settings
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.gates import PROTECTED, CommandGate, HumanGate, Placement, Where
from lockgate.core.model.results import Broken, Failed, Passed, Waiting
from lockgate.core.model.task import Approval, GatesPassed, Status, TaskId
from lockgate.core.train.entries import SHOWN, Waits, entries, since, train_gates, verdict
from lockgate.core.train.model import Broken as NotJudged
from lockgate.core.train.model import Green, Red
from tests.given import COMMIT, NOW, PROOF, a_task

TASK = a_task(Status.REVIEWING, candidate=COMMIT, phase=GatesPassed("a", 5.0), priority=2)
OK = Passed("tests", PROOF)


def test_an_entry_has_the_change_its_age_and_what_must_land_before_it() -> None:
    [entry] = entries([Waits(TASK, (TaskId("first"),), 7)], MergeMode.AUTO)

    assert (entry.change.task, entry.change.commit) == (TASK.id, COMMIT)
    assert (entry.since, entry.entered, entry.priority) == (5.0, 7, 2)
    assert (entry.depends_on, entry.held) == (("first",), "")


def test_without_a_word_of_when_it_passed_its_last_change_counts() -> None:
    assert since(replace(TASK, phase=None)) == NOW


@pytest.mark.parametrize(
    ("mode", "to_land", "held", "waits_for"),
    [
        (MergeMode.MANUAL, False, "", "lockgate approve"),
        (MergeMode.MANUAL, True, "", ""),
        (MergeMode.AUTO, False, "", ""),
        (MergeMode.AUTO, False, "not today", "not today"),
        (MergeMode.MANUAL, False, "not today", "not today"),
    ],
)
def test_where_landing_is_by_hand_a_human_must_say_yes_first(
    mode, to_land, held, waits_for
) -> None:
    [entry] = entries([Waits(replace(TASK, to_land=to_land, held=held))], mode)

    assert waits_for in entry.held
    assert bool(entry.held) == bool(waits_for)


YES = Approval(PROTECTED, "p1")


@pytest.mark.parametrize(
    ("mode", "fields", "waits"),
    [
        (MergeMode.AUTO, {}, True),
        (MergeMode.AUTO, {"approvals": (YES,)}, False),
        (MergeMode.AUTO, {"approvals": (replace(YES, patch="p0"),)}, True),
        (MergeMode.AUTO, {"to_land": True}, False),
        (MergeMode.AUTO, {"protected": ("secrets/key",)}, False),
        (MergeMode.MANUAL, {}, True),
        (MergeMode.MANUAL, {"approvals": (YES,)}, True),
        (MergeMode.MANUAL, {"to_land": True}, False),
    ],
)
def test_nothing_that_steers_lands_without_a_humans_yes_to_this_very_change(
    mode, fields, waits
) -> None:
    task = replace(TASK, **{"patch": "p1", "protected": ("AGENTS.md",), **fields})

    [entry] = entries([Waits(task)], mode)

    assert bool(entry.held) is waits
    if waits and not task.approvals:
        assert entry.held.startswith("it changes what steers agents, editors, hooks or CI: AGENTS")


def test_what_runs_is_run_again_on_the_train_and_people_are_not_asked_again() -> None:
    both = Placement(serial=True, on=(Where.CHANGE, Where.TRAIN))
    change = Placement(serial=True, on=(Where.CHANGE,))
    gates = (
        CommandGate(name="tests", place=both, command="true"),
        CommandGate(name="lint", place=change, command="true"),
        CommandGate(name="slow", place=replace(both, on=(Where.TRAIN,)), command="true"),
        HumanGate("approval", both),
    )

    assert [it.name for it in train_gates(Settings(formula="none", gates=gates))] == [
        "tests",
        "slow",
    ]


def test_a_tree_is_green_only_when_every_gate_passed() -> None:
    assert verdict([]) == Green()
    assert verdict([OK, OK]) == Green()


@pytest.mark.parametrize("other", [Broken("lint", "no tool"), Waiting("lint", "well?")])
def test_a_gate_that_could_not_judge_says_nothing_of_the_tree(other) -> None:
    result = verdict([OK, other])

    assert isinstance(result, NotJudged)
    assert "gate lint could not judge" in result.why


def test_a_failure_is_certain_whatever_could_not_be_judged() -> None:
    found = Finding(Priority.P1_MAJOR, "it loops", Location("a.py", 3))

    assert verdict([Broken("lint", "no tool"), Failed("tests", (found,))]) == Red(
        "gate tests fails: a.py:3 - it loops"
    )
    assert verdict([Failed("tests", ())]) == Red("gate tests fails: it says nothing")


def test_of_many_findings_the_first_are_told() -> None:
    many = tuple(Finding(Priority.P2_MINOR, f"number {n}") for n in range(SHOWN + 3))

    result = verdict([Failed("tests", many)])

    assert isinstance(result, Red)
    assert result.evidence.endswith("number 19\nand 3 more")
