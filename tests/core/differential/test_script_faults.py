"""Faults for JavaScript: which edits are made of a text, and which texts are left alone."""

import pytest

from lockgate.core.differential import script_faults
from lockgate.core.differential.faults import Fault, drawn
from lockgate.core.differential.script_faults import equal_lines, script_faults_in

CODE = """\
import { x } from "./x.mjs";
const y = require("y");

// a + b is a comment
export function add(a, b) {
  return a + b;
}

exports.sub = (a, b) => a - b; /* 1 + 1 */

class Shop {
  total(prices) {
    let sum = 0;
    for (const it of prices) {
      if (it >= 10 && it !== -1) sum += it;
    }
    return `${sum} €` + "ß" + {"key": true}[y] + /a+b/.test("c");
  }
}
"""


def planted(text: str, fault: Fault) -> str:
    lines = text.encode().split(b"\n")
    row = lines[fault.span.line - 1]
    lines[fault.span.line - 1] = (
        row[: fault.span.column] + fault.new.encode() + row[fault.span.end_column :]
    )
    return b"\n".join(lines).decode()


def every(text: str = CODE, path: str = "shop.js", **more: bool) -> tuple[Fault, ...]:
    return tuple(script_faults_in(path, text, equal_lines({path: text}), **more))


def lines(text: str, path: str = "a.js") -> set[str]:
    return {planted(text, it) for it in every(text, path)}


@pytest.mark.parametrize(
    ("text", "some"),
    [
        ("return a + b;", {"return a - b;", "return a * b;", "return undefined;", "return [];"}),
        ("x = a === b", {"x = a !== b"}),
        ("x = a < 3", {"x = a <= 3", "x = a >= 3", "x = a < (3 + 1)"}),
        ("x = !ok && true", {"x = !ok || true", "x = !ok && false"}),
        ("f('a', \"b\")", {"f('ax', \"b\")", "f('a', \"bx\")"}),
        ("total += 1.5", {"total -= 1.5", "total += (1.5 + 1)"}),
    ],
)
def test_a_token_becomes_another_one(text, some) -> None:
    assert some <= lines(text)


@pytest.mark.parametrize(
    "text",
    [
        "import { a } from 'b'",
        "const a = require('a')",
        "// a + b",
        "/* 1 */",
        "x = `a + ${1 + 1}`",
        "x = -y",
        "x = 0x1f",
        "x = /a+b/",
        "x = { 'a': y }",
        "x => x",
        "\u20ac",
        "return a;\n".replace("return a;", "return"),
    ],
)
def test_what_is_no_code_or_loads_it_is_left_alone(text) -> None:
    assert lines(text) == set()


def test_a_type_has_brackets_and_no_comparisons() -> None:
    assert lines("const a: Array<string> = b", "a.ts") == set()
    assert lines("const c = a < b", "a.js")


def test_a_fault_names_its_place_and_is_one_edit() -> None:
    found = every()

    assert {it.function for it in found} >= {"add", "sub", "total"}
    assert all(planted(CODE, it) != CODE for it in found)
    assert not any(it.neutral for it in found)
    assert {it.old for it in found if it.span.line == 17} >= {'"ß"', "true"}
    assert all(it.words.startswith("shop.js:") for it in drawn(found, "seed"))


def test_lines_that_base_has_come_apart_from_those_it_has_not() -> None:
    base = equal_lines({"shop.js": CODE.replace("a + b", "b + a")})

    equal = tuple(script_faults_in("shop.js", CODE, base))
    edited = tuple(script_faults_in("shop.js", CODE, base, edited=True))

    assert {it.span.line for it in edited} == {6}
    assert 6 not in {it.span.line for it in equal}


def test_a_file_that_is_too_long_has_none(monkeypatch) -> None:
    monkeypatch.setattr(script_faults, "FILE", 3)

    assert every() == ()
