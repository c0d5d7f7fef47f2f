"""The formulas that ship: each row of the sources' list, as data."""

import pytest

from lockgate.adapters.config.load import load_config
from lockgate.adapters.config.schema import (
    GATE_FORMULAS,
    STEP_FORMULAS,
    formula_gates,
    formula_steps,
    formula_text,
)
from lockgate.core.config.checks import problems
from lockgate.core.config.settings import Expect, Settings
from lockgate.core.model.gates import DIMENSIONS, Gate, ParallelReviewGate, kind_of, waves
from lockgate.core.model.task import AgentPhase
from lockgate.errors import BadConfig

COMMANDS = '[commands]\ntest = "pytest"\ntypecheck = "mypy"\n'


def loaded(formula: str) -> Settings:
    return load_config(f'{COMMANDS}[gates]\nformula = "{formula}"\n', origin="a test")


def row(gate: Gate) -> str:
    dimensions = gate.dimensions if isinstance(gate, ParallelReviewGate) else ()
    serial = " serial" if gate.place.serial else ""
    return " ".join((f"{gate.name}: {kind_of(gate)}{serial}", *dimensions))


TESTS = "tests: command serial"
TYPES = "typecheck: command serial"
REVIEW = "code_review: parallel_review"
ROWS = [
    pytest.param(
        "code-review",
        [TESTS, TYPES, f"{REVIEW} {' '.join(DIMENSIONS)}"],
        marks=pytest.mark.req("R152"),
    ),
    pytest.param(
        "security-audit",
        [TESTS, f"{REVIEW} security resilience correctness", "human_approval: human serial"],
        marks=pytest.mark.req("R153"),
    ),
    pytest.param(
        "quick-review", [TESTS, f"{REVIEW} correctness security"], marks=pytest.mark.req("R154")
    ),
    pytest.param("none", [], marks=pytest.mark.req("R155")),
    pytest.param("plain", [TESTS, TYPES, f"{REVIEW} general"]),
    pytest.param("solo", [TESTS, TYPES, "differential: differential serial", f"{REVIEW} general"]),
]


@pytest.mark.parametrize(("formula", "rows"), ROWS)
def test_a_formula_has_exactly_the_gates_of_the_sources(formula, rows) -> None:
    assert [row(gate) for gate in loaded(formula).gates] == rows


@pytest.mark.req("R156")
def test_each_formula_is_one_data_file_with_a_first_line_that_says_what_it_is() -> None:
    texts = [formula_text(name) for name in (*GATE_FORMULAS, *STEP_FORMULAS)]

    assert all(text.startswith("# ") for text in texts)
    assert {row.values[0] for row in ROWS} == set(GATE_FORMULAS)


@pytest.mark.req("R149")
@pytest.mark.parametrize("formula", GATE_FORMULAS)
def test_dashes_and_underscores_name_the_same_formula(formula) -> None:
    assert loaded(formula.replace("-", "_")) == loaded(formula)


def test_a_human_is_asked_only_after_everything_else() -> None:
    last = waves(loaded("security-audit").gates)[-1]

    assert [gate.name for gate in last] == ["human_approval"]


@pytest.mark.req("R122", "R152")
def test_no_config_at_all_is_code_review_whose_gates_cannot_pass() -> None:
    settings = load_config(None, origin="a test")

    assert settings.formula == "code-review"
    assert [gate.name for gate in settings.gates] == ["tests", "typecheck", "code_review"]
    assert [it.where[2] for it in problems(settings)] == ["tests", "typecheck"]


def test_tdd_is_red_green_refactor_verify_with_the_test_command() -> None:
    steps = load_config(f'steps = "tdd"\n{COMMANDS}', origin="a test").steps

    assert [step.name for step in steps] == ["red", "green", "refactor", "verify"]
    assert [step.phase for step in steps] == list(AgentPhase)
    assert [step.expect for step in steps] == [Expect.FAIL, *[Expect.PASS] * 3]
    assert [step.after for step in steps] == [(), ("red",), ("green",), ("refactor",)]
    assert {step.command for step in steps} == {"pytest"}


def test_what_a_caller_does_to_a_formula_does_not_last() -> None:
    formula_gates("solo").clear()
    formula_steps("tdd").clear()

    assert formula_gates("solo")
    assert formula_steps("tdd")


def test_one_line_takes_gates_out_of_a_formula() -> None:
    text = f'{COMMANDS}[gates]\nformula = "solo"\nskip = ["typecheck", "differential"]\n'

    settings = load_config(text, origin="a test")

    assert [gate.name for gate in settings.gates] == ["tests", "code_review"]


def test_a_name_to_skip_that_is_not_there_is_refused_with_its_line() -> None:
    text = f'{COMMANDS}[gates]\nformula = "solo"\nskip = ["types"]\n'

    with pytest.raises(BadConfig, match=r"line \d+: no gate is called 'types'; there are tests,"):
        load_config(text, origin="a test")
