"""Configured gates: kinds, defaults, a list over a formula, waves."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.config.settings import MergeMode, MergeSettings, Settings, pin, reference
from lockgate.core.lifecycle.decision import rules_for
from lockgate.core.lifecycle.map import gates_of
from lockgate.core.model.agents import file_agent
from lockgate.core.model.gates import (
    DIMENSIONS,
    OWN_KEYS,
    PROTECTED,
    CommandGate,
    DifferentialGate,
    Dimension,
    Gate,
    HumanGate,
    MultipassReviewGate,
    ParallelReviewGate,
    Placement,
    Report,
    Where,
    WrittenGate,
    as_pinned,
    condition,
    configured,
    kind_of,
    merge_gates,
    misfits,
    waves,
    with_protected,
)
from lockgate.core.model.task import GateKind, GateRef
from lockgate.core.text.steering import asked_of
from tests.given import a_task, evidence

KINDS = {
    GateKind.COMMAND: CommandGate,
    GateKind.DIFFERENTIAL: DifferentialGate,
    GateKind.PARALLEL_REVIEW: ParallelReviewGate,
    GateKind.MULTIPASS_REVIEW: MultipassReviewGate,
    GateKind.HUMAN: HumanGate,
}
FORMULA = (
    WrittenGate(name="tests", type=GateKind.COMMAND, serial=True),
    WrittenGate(name="code_review", type=GateKind.PARALLEL_REVIEW, dimensions=DIMENSIONS),
    WrittenGate(name="human_approval", type=GateKind.HUMAN),
)
SAMPLES: dict[str, Any] = {
    "command": "make test",
    "serial": False,
    "fail_fast": True,
    "attempts": 1,
    "timeout": 5,
    "report": Report.TAP,
    "needs": ("gpu",),
    "exclusive": "db",
    "on": (Where.TRAIN,),
    "when": "task.priority == 1",
    "paths": ("api/**",),
    "dimensions": (Dimension.STYLE,),
    "advisory": (Dimension.SMELLS,),
    "reviewer": "codex",
    "prompt": "Look",
    "approvers": ("ann",),
}


def gate(name: str = "g", kind: GateKind = GateKind.COMMAND, *, serial: bool | None = None) -> Gate:
    return configured(WrittenGate(name=name, serial=serial), kind, "true")


@pytest.mark.req("R150")
@pytest.mark.parametrize(("kind", "type_"), list(KINDS.items()))
def test_each_kind_becomes_its_own_type_and_is_referred_to_by_name(kind, type_) -> None:
    made = gate("mine", kind)

    assert type(made) is type_
    assert kind_of(made) is kind
    assert (reference(made).name, reference(made).kind) == ("mine", kind)


def test_a_reference_has_what_a_decision_about_reviewers_needs() -> None:
    written = WrittenGate(
        name="r", dimensions=(Dimension.SECURITY,), advisory=(Dimension.STYLE,), reviewer="codex"
    )
    parallel = configured(written, GateKind.PARALLEL_REVIEW, "")
    passes = configured(WrittenGate(name="m", reviewer="gemini"), GateKind.MULTIPASS_REVIEW, "")

    assert reference(parallel) == GateRef(
        "r",
        GateKind.PARALLEL_REVIEW,
        reviewers=("security", "style"),
        advisory=("style",),
        agent="codex",
    )
    assert reference(passes) == GateRef("m", GateKind.MULTIPASS_REVIEW, agent="gemini")


@pytest.mark.parametrize(
    ("kind", "serial"),
    [
        (GateKind.COMMAND, True),
        (GateKind.DIFFERENTIAL, False),
        (GateKind.PARALLEL_REVIEW, False),
        (GateKind.MULTIPASS_REVIEW, False),
        (GateKind.HUMAN, True),
    ],
)
def test_commands_and_humans_are_serial_unless_the_gate_says_otherwise(kind, serial) -> None:
    assert gate(kind=kind).place.serial is serial
    assert gate(kind=kind, serial=not serial).place.serial is not serial


def test_only_a_command_gate_runs_on_the_train_by_itself() -> None:
    on_train = [kind for kind in GateKind if Where.TRAIN in gate(kind=kind).place.on]

    assert on_train == [GateKind.COMMAND]


def test_there_are_seven_dimensions_and_the_general_one() -> None:
    names = "correctness performance security elegance resilience style smells"

    assert " ".join(DIMENSIONS) == names
    assert set(Dimension) - set(DIMENSIONS) == {Dimension.GENERAL}


@pytest.mark.req("R151")
def test_every_key_that_is_written_reaches_the_gate() -> None:
    keys = OWN_KEYS[GateKind.COMMAND] | {"serial", "fail_fast", "exclusive", "on", "when"}
    written = WrittenGate(name="g", **{key: SAMPLES[key] for key in keys})

    made = configured(written, GateKind.COMMAND, "unused")

    assert isinstance(made, CommandGate)
    seen = {key: getattr(made if hasattr(made, key) else made.place, key) for key in keys}
    assert seen == {key: SAMPLES[key] for key in keys}


def test_an_advisory_dimension_reviews_but_does_not_block() -> None:
    review = configured(
        WrittenGate(
            name="r",
            dimensions=(Dimension.CORRECTNESS, Dimension.STYLE),
            advisory=(Dimension.STYLE, Dimension.SMELLS),
            reviewer="codex",
        ),
        GateKind.PARALLEL_REVIEW,
        "",
    )

    assert isinstance(review, ParallelReviewGate)
    assert review.reviewers == (Dimension.CORRECTNESS, Dimension.STYLE, Dimension.SMELLS)
    assert review.blocking == (Dimension.CORRECTNESS,)


def test_an_explicit_empty_command_is_kept_empty() -> None:
    made = configured(WrittenGate(name="g", command=""), GateKind.COMMAND, "make test")

    assert isinstance(made, CommandGate)
    assert not made.command


# --- a list over a formula ----------------------------------------------------------------------


@pytest.mark.req("R149")
@pytest.mark.parametrize("key", sorted(SAMPLES))
def test_a_listed_gate_overrides_only_the_keys_it_writes(key) -> None:
    other = {name: value for name, value in SAMPLES.items() if name != key}
    formula = WrittenGate(name="tests", type=GateKind.COMMAND, **other)
    listed = WrittenGate(name="tests", **{key: SAMPLES[key]})

    (merged,) = merge_gates([formula], [listed])

    assert merged == replace(formula, **{key: SAMPLES[key]})


@pytest.mark.req("R149")
def test_a_listed_gate_with_a_new_name_comes_behind_the_formula_s() -> None:
    lint = WrittenGate(name="lint", type=GateKind.COMMAND)

    merged = merge_gates(FORMULA[:2], [lint])

    assert [it.name for it in merged] == ["tests", "code_review", "lint"]


@pytest.mark.parametrize(
    ("listed", "order"),
    [
        ("", "tests code_review human_approval"),
        ("lint", "tests code_review lint human_approval"),
        ("lint human_approval", "tests code_review lint human_approval"),
        ("human_approval lint", "tests code_review human_approval lint"),
        ("code_review tests", "tests code_review human_approval"),
    ],
)
def test_a_formula_s_human_gate_is_last_unless_the_list_places_it(listed, order) -> None:
    entries = [WrittenGate(name=name) for name in listed.split()]

    merged = merge_gates(FORMULA, entries)

    assert " ".join(it.name for it in merged) == order


def test_a_gate_given_another_type_keeps_none_of_the_formula_s_keys() -> None:
    listed = WrittenGate(name="tests", type=GateKind.HUMAN, prompt="Did they pass?")

    merged = merge_gates(FORMULA[:1], [listed])

    assert merged == (listed,)


@given(st.lists(st.sampled_from(["tests", "code_review", "human_approval", "a", "b"]), unique=True))
def test_merging_loses_no_gate_and_doubles_none(names) -> None:
    listed = [WrittenGate(name=name, fail_fast=True) for name in names]

    merged = merge_gates(FORMULA, listed)

    assert sorted(it.name for it in merged) == sorted({*names, *(it.name for it in FORMULA)})
    assert all(it.fail_fast for it in merged if it.name in names)


@pytest.mark.parametrize("kind", GateKind)
def test_a_key_of_another_type_is_named(kind) -> None:
    written = WrittenGate(name="g", type=kind, **SAMPLES)

    assert set(misfits(written)) == set().union(*OWN_KEYS.values()) - OWN_KEYS[kind]
    assert misfits(WrittenGate(name="g", type=kind)) == ()


def test_without_a_type_every_special_key_is_a_misfit() -> None:
    assert misfits(WrittenGate(name="g", prompt="x")) == ("prompt",)


def test_the_samples_cover_every_key() -> None:
    assert set(WrittenGate.__struct_fields__) - {"name", "type"} == set(SAMPLES)


# --- waves --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("serial", "expected"),
    [("", ""), ("s", "s"), ("ss", "s s"), ("pp", "pp"), ("sppsp", "s pp s p"), ("pspp", "p s pp")],
)
def test_a_serial_gate_is_a_wave_alone_and_neighbours_run_together(serial, expected) -> None:
    gates = [gate(letter, serial=letter == "s") for letter in serial]

    assert " ".join("".join(it.name for it in wave) for wave in waves(gates)) == expected


@given(st.lists(st.booleans()))
def test_waves_keep_every_gate_in_order_and_barriers_hold(serial) -> None:
    gates = [gate(str(n), serial=it) for n, it in enumerate(serial)]

    found = waves(gates)

    assert [it for wave in found for it in wave] == gates
    assert all(len(wave) == 1 or not any(it.place.serial for it in wave) for wave in found)
    assert all(a[-1].place.serial or b[0].place.serial for a, b in pairwise(found))


# --- what is protected --------------------------------------------------------------------------

WORKFLOW = (".github/ci.yml",)
written_gates = st.lists(
    st.builds(
        WrittenGate,
        name=st.just("g"),
        on=st.sampled_from([(Where.CHANGE,), (Where.TRAIN,), (Where.CHANGE, Where.TRAIN)]),
        when=st.sampled_from([None, "task.priority == 1"]),
        type=st.sampled_from(GateKind),
    ),
    max_size=5,
)


def from_written(found: list[WrittenGate]) -> tuple[Gate, ...]:
    return tuple(
        configured(replace(it, name=f"g{n}"), it.type or GateKind.COMMAND, "true")
        for n, it in enumerate(found)
    )


def asked_of_a_change(gates: tuple[Gate, ...]) -> list[Gate]:
    return [it for it in gates if isinstance(it, HumanGate) and Where.CHANGE in it.place.on]


def test_a_change_that_touches_what_is_protected_gets_a_humans_gate_at_its_end() -> None:
    plain = (gate("tests"), gate("review", GateKind.PARALLEL_REVIEW))

    *same, added = with_protected(plain, WORKFLOW)

    assert tuple(same) == plain
    assert isinstance(added, HumanGate)
    assert (added.name, added.place.serial, added.place.when) == (PROTECTED, True, "")


def test_where_a_human_is_asked_anyway_no_gate_is_added() -> None:
    gates = (gate("tests"), gate("approval", GateKind.HUMAN))

    assert with_protected(gates, WORKFLOW) == gates


def test_a_human_who_is_asked_on_a_condition_is_asked_of_what_is_protected_without_one() -> None:
    written = WrittenGate(name="approval", when="task.priority == 1")
    sometimes = configured(written, GateKind.HUMAN, "")

    [always] = with_protected((sometimes,), WORKFLOW)

    assert always == replace(sometimes, place=replace(sometimes.place, when=""))


@given(written_gates)
def test_somebody_is_asked_of_what_is_protected_and_one_gate_is_added_at_most(written) -> None:
    gates = from_written(written)

    more = with_protected(gates, WORKFLOW)

    assert any(not it.place.when for it in asked_of_a_change(more))
    assert [it.name for it in more[: len(gates)]] == [it.name for it in gates]
    added = [it.name for it in more[len(gates) :]]
    assert added == ([] if asked_of_a_change(gates) else [PROTECTED])
    assert with_protected(more, WORKFLOW) == more
    assert with_protected(gates, ()) == gates


A_FILE = file_agent("agent.sh", "0" * 64)


@given(
    written_gates,
    st.sampled_from([(), WORKFLOW, (".lockgate/config.toml",), ("AGENTS.md", "secrets/a")]),
    st.sampled_from(MergeMode),
    st.sampled_from([("scripted", ""), (A_FILE, ""), (A_FILE, "claude")]),
)
def test_a_decision_waits_for_exactly_the_gates_that_are_run(written, touched, mode, who) -> None:
    """Else a task would wait for ever, or go on without its human."""
    settings = Settings(
        formula="none",
        gates=from_written(written),
        protect=("secrets/**",),
        merge=MergeSettings(mode=mode),
    )
    agent, reviewer = who
    seen = evidence(a_task(protected=touched, agent=agent), reviewer=reviewer)
    pinned = rules_for(seen, pin(settings, "b" * 40, "c" * 64))

    waits_for = gates_of(evidence(replace(seen.task, pinned=pinned)))

    asked, gates = asked_of(touched, pinned), as_pinned(settings.gates, pinned.gates)
    run = [it for it in with_protected(gates, asked) if Where.CHANGE in it.place.on]
    assert [it.name for it in waits_for] == [it.name for it in run]
    assert [it.kind for it in waits_for] == [kind_of(it) for it in run]


def test_when_a_gate_judges_is_said_in_the_configurations_words() -> None:
    always = Placement(serial=True, on=(Where.CHANGE,))
    both = replace(always, paths=("api/**",), when="task.priority == 1")

    assert condition(HumanGate("g", always)) == ""
    assert condition(HumanGate("g", both)) == 'paths = ["api/**"] and task.priority == 1'
