"""Whom the gates hold together, and where a change could slip past."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.config.checks import Coverage, coverage, unknown_skips, why_unjudged
from lockgate.core.config.settings import MergeMode, MergeSettings, Settings
from lockgate.core.model.gates import (
    CommandGate,
    DifferentialGate,
    Gate,
    HumanGate,
    MultipassReviewGate,
    ParallelReviewGate,
    Placement,
    Where,
)

ALWAYS = Placement(serial=True, on=(Where.CHANGE, Where.TRAIN))
SOMETIMES = replace(ALWAYS, when="task.priority == 1")
TRAIN = replace(ALWAYS, on=(Where.TRAIN,))
TESTS = CommandGate(name="tests", place=ALWAYS, command="pytest -q")
TYPES = CommandGate(name="types", place=ALWAYS, command="mypy src")
REVIEW = ParallelReviewGate(name="review", place=replace(ALWAYS, on=(Where.CHANGE,)))
PASSES = MultipassReviewGate("passes", REVIEW.place)
HUMAN = HumanGate("human", REVIEW.place)
SAME = DifferentialGate(name="same", place=REVIEW.place, command="pytest -q")
AUTO = MergeSettings(mode=MergeMode.AUTO)


def of(*gates: Gate, merge: MergeSettings | None = None) -> Coverage:
    settings = Settings(formula="none", gates=gates)
    return coverage(replace(settings, merge=merge) if merge else settings)


API = replace(TESTS, name="api", place=replace(ALWAYS, paths=("api/**",)))
WEB = replace(TESTS, name="web", place=replace(ALWAYS, paths=("web/**", "shared/**")))


def test_gates_with_paths_leave_no_hole_for_some_other_file_is_for_all_of_them() -> None:
    found = of(API, WEB)

    assert (found.sometimes, found.hole) == ((API, WEB), "")
    assert of(replace(API, command="true"), TESTS).hole == ""


def test_gates_are_told_apart_by_which_changes_they_judge() -> None:
    some, later = replace(TYPES, place=SOMETIMES), replace(TYPES, name="later", place=TRAIN)

    found = of(TESTS, some, later, REVIEW)

    assert (found.always, found.sometimes, found.never) == ((TESTS, REVIEW), (some,), (later,))
    assert found.hole == ""


HOLES = {
    "no gate": ((), "no gate that runs a command"),
    "reviews alone": ((REVIEW, HUMAN), "no gate that runs a command"),
    "one with a when": ((replace(TESTS, place=SOMETIMES),), "gate tests: each has a `when`"),
    "all with a when": (
        (replace(TESTS, place=SOMETIMES), replace(TYPES, place=SOMETIMES), REVIEW),
        "gates tests, types: each has a `when`",
    ),
    "in the train only": ((replace(TESTS, place=TRAIN),), "in the train only"),
    "one that cannot fail": ((replace(TESTS, command="pytest || true"),), "tests cannot fail"),
    "one that cannot fail, alone on its paths": (
        (
            replace(TESTS, command="true", place=replace(ALWAYS, paths=("api/**",))),
            replace(TYPES, place=replace(ALWAYS, paths=("web/**",))),
        ),
        "gate tests cannot fail, and no other one judges api/**",
    ),
    "that and one with a when": (
        (replace(TESTS, command="true"), replace(TYPES, place=SOMETIMES)),
        "gate tests cannot fail",
    ),
}


@pytest.mark.parametrize(("gates", "says"), HOLES.values(), ids=HOLES)
def test_a_change_that_no_command_would_judge_is_a_hole(gates: tuple[Gate, ...], says: str) -> None:
    assert says in of(*gates).hole


@pytest.mark.parametrize(
    "gates",
    [
        (TESTS,),
        (SAME,),
        (TESTS, replace(TYPES, place=SOMETIMES)),
        (replace(TESTS, command="true"), TYPES),
    ],
)
def test_one_command_that_judges_every_change_is_enough(gates: tuple[Gate, ...]) -> None:
    assert of(*gates).hole == ""


def test_what_runs_in_the_train_judges_every_change_that_the_train_lands() -> None:
    assert of(replace(TESTS, place=TRAIN), merge=AUTO).hole == ""


def test_a_masked_command_is_named_though_others_hold() -> None:
    found = of(TESTS, replace(TYPES, command="mypy src | tee log"))

    assert [(it.gate, it.command) for it in found.masked] == [("types", "mypy src | tee log")]


def test_the_differential_gate_asks_for_tests_by_name_so_no_exit_masks_it() -> None:
    assert of(replace(SAME, command="pytest || true")).masked == ()


GATES = st.lists(
    st.builds(
        CommandGate,
        name=st.uuids().map(str),
        place=st.sampled_from([ALWAYS, SOMETIMES, TRAIN]),
        command=st.sampled_from(["pytest", "true", "pytest || true"]),
    ),
    max_size=5,
)


@given(GATES)
def test_there_is_no_hole_exactly_where_a_gate_holds_every_change(gates: list[CommandGate]) -> None:
    holds = any(it.place is ALWAYS and it.command == "pytest" for it in gates)

    found = of(*gates)

    assert (found.hole == "") is holds
    assert len(found.always) + len(found.sometimes) + len(found.never) == len(gates)


@pytest.mark.parametrize(
    ("gate", "compared", "says"),
    [
        (TESTS, False, ""),
        (replace(TESTS, place=TRAIN), True, "train only"),
        (SAME, True, ""),
        (SAME, False, "nothing to compare with"),
        (REVIEW, True, "a review"),
        (PASSES, True, "a review"),
        (HUMAN, True, "a human"),
    ],
)
def test_a_commit_alone_is_judged_by_what_runs_a_command(
    gate: Gate, compared: bool, says: str
) -> None:
    told = why_unjudged(gate, compared=compared)

    assert says in told
    assert bool(says) is bool(told)


def test_a_name_to_skip_that_no_gate_has_is_a_problem() -> None:
    assert unknown_skips(["tests"], ["tests", "types"]) == ()

    [problem] = unknown_skips(["test"], ["tests", "types"])

    assert problem.says == "no gate is called 'test'; there are tests, types"
    assert "there are none" in unknown_skips(["x"], [])[0].says
