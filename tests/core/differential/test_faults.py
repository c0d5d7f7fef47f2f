"""Which faults are planted in a Python function, and in which order a seed draws them."""

import ast

import pytest

from lockgate.core.differential.faults import (
    NEUTRAL,
    OFFERED,
    TEXT,
    Fault,
    drawn,
    equal_functions,
    faults_in,
)


def planted(text: str, fault: Fault) -> str:
    lines = text.encode().split(b"\n")
    span = fault.span
    head = lines[span.line - 1][: span.column]
    tail = lines[span.end_line - 1][span.end_column :]
    lines[span.line - 1 : span.end_line] = [head + fault.new.encode() + tail]
    return b"\n".join(lines).decode()


def faults_of(text: str) -> tuple[Fault, ...]:
    return tuple(faults_in("app.py", text, equal_functions({"app.py": text})))


def new(body: str) -> set[str]:
    """What the one line of a function becomes."""
    text = f"def f(a, b):\n    {body}\n"
    every = (it for it in faults_of(text) if not it.neutral)
    return {planted(text, it).splitlines()[1].strip() for it in every}


@pytest.mark.parametrize(
    ("body", "some"),
    [
        ("return a + b", {"return (a - b)", "return (a)", "return (b)", "return None"}),
        ("return a < b", {"return (a <= b)", "return (a >= b)", "return True"}),
        ("return a < b < 3", {"return False", "return a < b < (3 + 1)"}),
        ("return a and b", {"return (a or b)", "return (a)", "return (b)"}),
        ("return a or b", {"return (a and b)"}),
        ("return not a", {"return (a)"}),
        ("return a @ b", {"return (a)", "return (b)"}),
        ("return a if b else 3", {"return (3 if b else a)"}),
        ("return max(a, b)", {"return (max(b, a))"}),
        ("return 'é'", {"return 'éx'"}),
        ("return True", {"return False", "raise RuntimeError"}),
        ("return 2.5", {"return (2.5 + 1)"}),
        ("a += b", {"pass"}),
        ("a.clear()", {"pass"}),
        ("raise ValueError", {"pass"}),
        ("c: list[int] = a + b", {"c: list[int] = (a - b)"}),
        ("return lambda: a + b", {"return lambda: (a - b)"}),
    ],
)
def test_a_statement_becomes(body: str, some: set[str]) -> None:
    assert some <= new(body)


@pytest.mark.parametrize("body", ["c: int", "return f'{a + b}'", "return", "return b''", "'text'"])
def test_what_says_nothing_about_behaviour_is_left_alone(body: str) -> None:
    kinds = {"return None", "return 0", "return 1", "return -1", "return ''", "return []"}

    assert new(body) <= kinds | {"return True", "raise RuntimeError", "'textx'"}


def test_a_branch_without_an_operator_is_left_alone() -> None:
    assert {it.new for it in faults_of("def f(a):\n    with a:\n        pass\n")} == set()


def test_loops_go_on_where_they_ended_and_end_where_they_went_on() -> None:
    text = "def f(a):\n    for it in a:\n        if it:\n            break\n        continue\n"

    assert {"continue", "break"} <= {it.new for it in faults_of(text)}


def test_every_fault_is_python_and_another_program() -> None:
    text = (
        'class A:\n    @staticmethod\n    def f(a, b=1 + 2):\n        """Adds 1 + 2."""\n'
        "        if a > 3 and (\n            b == 'ä'\n        ):\n            return a * 2\n"
        "        def g(x):\n            return x - 1\n        return [g(a), b]\n"
    )
    found = faults_of(text)

    for it in found:
        ast.parse(planted(text, it))
        assert planted(text, it) != text
    assert {it.starts for it in found} == {2}
    assert {it.function for it in found} == {"A.f"}
    assert not any("1 + 2" in it.old for it in found)
    assert found[0].words.startswith("app.py:")


def test_an_edit_that_changes_nothing_is_not_made_where_the_function_looks_at_its_names() -> None:
    assert any(it.neutral for it in faults_of("def f():\n    return 1\n"))
    assert not any(it.neutral for it in faults_of("def f():\n    return locals()\n"))


def test_only_functions_that_base_has_too_get_faults() -> None:
    base = equal_functions(
        {"old.py": "def kept():\n    return 1\n\n\ndef edited():\n    return 1\n"}
    )
    change = "X = 1\nif True:\n    def kept():\n        return 1\n\n\ndef edited():\n    return 2\n"

    assert {it.function for it in faults_in("new.py", change, base)} == {"kept"}
    assert {it.function for it in faults_in("new.py", change, base, edited=True)} == {"edited"}


@pytest.mark.parametrize("text", ["def f(:\n", "x = 1\n" * 200_000, "\0"])
def test_what_cannot_be_read_has_no_faults(text: str) -> None:
    assert faults_of(text) == ()


def test_a_seed_draws_each_function_in_turn_and_another_seed_draws_otherwise() -> None:
    text = "".join(f"def f{n}(a):\n    return a + {n} + 5\n\n\n" for n in range(9))
    one, two = drawn(faults_of(text), "one"), drawn(faults_of(text), "two")

    assert one == drawn(reversed(faults_of(text)), "one")
    assert one != two
    assert [it.neutral for it in one[:NEUTRAL]] == [True] * NEUTRAL
    assert len({it.function for it in one[NEUTRAL : NEUTRAL + 9]}) == 9


def test_no_more_are_drawn_than_one_measurement_may_need() -> None:
    text = "".join(f"def f{n}(a):\n    return a + {n} + 5\n\n\n" for n in range(200))

    assert len(drawn(faults_of(text), "s")) == OFFERED + NEUTRAL


def test_what_people_read_of_a_fault_is_short_and_one_line() -> None:
    text = f"def f(a):\n    return g({'a' * 200},\n        1)\n"
    shown = next(it.old for it in faults_of(text) if it.new == "return None")

    assert len(shown) == TEXT
    assert "\n" not in shown
