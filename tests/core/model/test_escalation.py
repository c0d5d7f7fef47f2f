"""S4's guard: how many failed attempts a task may have before a human is asked."""

import ast
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.model import escalation, limits
from lockgate.core.model.escalation import ESCALATION_THRESHOLD, EscalationGuard, escalation_guard

tasks = st.sampled_from(["a", "b", "c"])


def failed(guard: EscalationGuard, task: str, times: int) -> EscalationGuard:
    for _ in range(times):
        guard.record_failed_attempt(task)
    return guard


@pytest.mark.req("R175", "R177")
def test_each_failed_attempt_adds_one_to_its_task_alone() -> None:
    guard = failed(EscalationGuard(), "a", 3)

    assert guard.get_attempt_count("a") == 3
    assert guard.get_attempt_count("b") == 0


@pytest.mark.req("R176")
@pytest.mark.parametrize(
    ("failures", "escalates"),
    [(0, False), (1, False), (2, False), (3, False), (4, False), (5, True), (6, True)],
)
def test_a_task_escalates_from_its_fifth_failure_on(failures: int, escalates: bool) -> None:
    guard = failed(EscalationGuard(), "a", failures)

    assert guard.should_escalate("a") is escalates


@pytest.mark.req("R178")
def test_a_reset_clears_the_count_of_its_task_alone() -> None:
    guard = failed(failed(EscalationGuard(), "a", 5), "b", 5)

    guard.reset("a")
    guard.reset("unknown")

    assert (guard.get_attempt_count("a"), guard.should_escalate("a")) == (0, False)
    assert guard.should_escalate("b")


@pytest.mark.req("R179")
def test_only_tasks_at_or_over_the_threshold_are_listed() -> None:
    guard = failed(failed(failed(EscalationGuard(), "a", 4), "b", 5), "c", 6)

    assert guard.get_escalated_tasks() == ["b", "c"]


@pytest.mark.req("R180")
def test_the_threshold_is_a_name_and_the_guard_holds_no_number() -> None:
    numbers = {
        node.value
        for node in ast.walk(ast.parse(inspect.getsource(escalation)))
        if isinstance(node, ast.Constant) and isinstance(node.value, int)
    }

    assert ESCALATION_THRESHOLD is limits.ESCALATION_THRESHOLD
    assert ESCALATION_THRESHOLD == 5
    assert numbers == {0, 1}


@pytest.mark.req("R181")
def test_the_guard_is_synchronous_imports_nothing_but_its_limit_and_hides_its_map() -> None:
    tree = ast.parse(inspect.getsource(escalation))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    waits = [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]

    assert [getattr(node, "module", "") for node in imports] == ["lockgate.core.model.limits"]
    assert waits == []
    assert all(name.startswith("_") for name in vars(EscalationGuard()))


@pytest.mark.req("R182")
def test_one_guard_is_there_for_all_who_bring_none() -> None:
    assert isinstance(escalation_guard, EscalationGuard)
    assert escalation_guard.get_attempt_count("a task that nobody has seen") == 0


def test_the_count_of_a_row_replaces_what_was_remembered() -> None:
    guard = failed(EscalationGuard(), "a", 2)

    guard.load("a", 4)
    before = guard.should_escalate("a")
    guard.record_failed_attempt("a")

    assert (before, guard.should_escalate("a")) == (False, True)


@given(st.integers(1, 20), st.integers(0, 40))
def test_a_threshold_of_its_own_is_the_one_that_counts(threshold: int, failures: int) -> None:
    guard = failed(EscalationGuard(threshold=threshold), "a", failures)

    assert guard.should_escalate("a") is (failures >= threshold)


@pytest.mark.req("R175", "R176", "R178", "R179")
@given(st.lists(st.tuples(tasks, st.sampled_from(["fail", "fail", "fail", "reset"])), max_size=60))
def test_a_guard_counts_what_happened_since_the_last_reset(
    story: list[tuple[str, str]],
) -> None:
    guard = EscalationGuard()
    counts: dict[str, int] = {}

    for task, what in story:
        if what == "fail":
            guard.record_failed_attempt(task)
            counts[task] = counts.get(task, 0) + 1
        else:
            guard.reset(task)
            counts.pop(task, None)

    assert {task: guard.get_attempt_count(task) for task in counts} == counts
    assert set(guard.get_escalated_tasks()) == {it for it, count in counts.items() if count >= 5}


@pytest.mark.req("R176")
def test_a_task_that_was_pinned_another_threshold_is_judged_by_its_own() -> None:
    guard = EscalationGuard()

    guard.load("patient", 6, threshold=7)
    guard.load("hasty", 2, threshold=2)

    assert guard.get_escalated_tasks() == ["hasty"]
