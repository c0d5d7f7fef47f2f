"""`when`: what holds, what is refused, and that nothing hostile costs time or takes the process."""

import json
import sys
import time
from subprocess import run
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.adapters.config.when import MAX_PATHS, NAMES, Unfit, When, compile_when

TASK = {
    "id": "t1",
    "summary": "Fix the login",
    "branch": "fix-login",
    "priority": 1,
    "agent": "claude",
    "iteration": 2,
}
CHANGE = {"paths": ["api/login.py", "docs/a.md"], "files_changed": 2}


def holds(expression: str) -> bool:
    when = compile_when(expression)
    assert isinstance(when, When), when
    return when.holds(TASK, CHANGE)


@pytest.mark.req("R151")
@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("task.priority == 1", True),
        ("task.priority != 1", False),
        ("1 == task.priority", True),
        ("task.priority == 1 && change.paths.exists(p, p.startsWith('api/'))", True),
        ("change.paths.all(p, p.endsWith('.md'))", False),
        ("change.paths.exists_one(p, p.contains('login'))", True),
        ("size(change.paths) > 1 || task.agent == 'codex'", True),
        ("change.paths.size() == 2", True),
        ("2 == change.paths.size()", True),
        ("change.files_changed >= 10", False),
        ("task.agent in ['claude', 'codex']", True),
        ("!(task.branch.startsWith('fix'))", False),
        ("task.iteration > 1 ? task.priority < 3 : false", True),
        ('task.summary == "Fix the login"', True),
        (r"task.summary == r'a\b'", False),
        ("change.paths[0] == 'api/login.py'", True),
        ("string(task.priority) + task.id == '1t1'", True),
        ("int('3') - 1 == task.iteration", True),
        ("  task.iteration % 2 == 0\n", True),
        ("[1, 2].all(x, x > 0) && ['a'].exists(y, y == task.id)", False),
        ("1.5e1 > 2.0", True),
    ],
)
def test_a_condition_over_task_and_change_is_answered(expression, answer) -> None:
    assert holds(expression) is answer


@pytest.mark.parametrize("field", [f"{root}.{name}" for root in NAMES for name in NAMES[root]])
def test_every_name_of_the_table_can_be_used(field) -> None:
    assert holds(f"{field} == {field}")


UNKNOWN = [
    ("task.foo == 1", "there is no task.foo"),
    ("change.path == 'a'", "there is no change.path"),
    ("tusk.priority == 1", "tusk is unknown"),
    ("priority == 1", "priority is unknown"),
    ("task == 1", "task alone says nothing"),
    ("task.id.lower() == 'a'", "there is no lower()"),
    ("len(change.paths) > 1", "there is no len()"),
    ("change.paths.exists(p, q == 'a')", "q is unknown"),
    ("change.paths.exists(p, p == 'a') && p == 'a'", "p is unknown"),
    ("change.paths.exists(p, p.foo == 'a')", "there is no p.foo"),
    ("task.priority == '1'", "a number is compared with a string"),
    ("'1' != task.priority && true", "a string is compared with a number"),
    ("change.paths == 'a'", "a list is compared with a string"),
    ("task.id == task.priority", "a string is compared with a number"),
    ("task.agent == null", "null is unknown"),
]


@pytest.mark.req("R151")
@pytest.mark.parametrize(("expression", "words"), UNKNOWN)
def test_a_condition_that_could_never_mean_anything_is_refused_when_it_is_read(
    expression, words
) -> None:
    refused = compile_when(expression)

    assert isinstance(refused, Unfit)
    assert words in refused.says


def nested(depth: int) -> str:
    opened = "".join(f"[1,2,3,4,5,6,7,8,9].all(x{n}, " for n in range(depth))
    return opened + "true" + ")" * depth


HOSTILE = [
    "task.__class__ == 1", "().__class__.__bases__[0].__subclasses__()", "''.__class__ == ''",
    "'abc'.__len__() == 3", "task.id.__class__", "__import__('os').system('id')", "import os",
    "lambda: 1", "exec('1')", "eval('1')", "open('/etc/passwd')", "globals()",
    "getattr(task, 'id')",
    "task.id.format('{0.__class__}')", "task['__class__'] == 1", "change['paths'] == []",
    "9**9**9", "9" * 900 + " == 1", "9*9*9999999999*999999999999 == 1", "1e999 > 0.0",
    "9223372036854775807 + 1 > 0", "-9223372036854775808 / -1 > 0",
    "-9223372036854775808 % -1 == 0", "1u - 2u == 0u", "uint(-1) == 0u", "int(1e300) > 1",
    "int('" + "9" * 99 + "') == 1", "1/0 == 1", "1 % 0 == 1", "0.0/0.0 == 0.0",
    "(" * 10_000 + "true" + ")" * 10_000, "(" * 490 + "true" + ")" * 490, "[" * 490 + "]" * 490,
    "{1:" * 300 + "1" + "}" * 300, "!" * 10_000 + "true", "!" * 990 + "true", "-" * 990 + "1 == 1",
    "true?true:" * 90 + "true", "1" + "[0]" * 300, "task" + ".id" * 300, "1 in " * 190 + "[1]",
    "&&".join(["true"] * 160), "+".join(["1"] * 480) + " == 480", "1==" * 300 + "1",
    "'" + "a" * 1_000_000 + "' == 'b'", "a" * 1_000_000, " " * 1_000_000, "'" * 999, '"' * 999,
    nested(2), nested(3), nested(8), nested(25),
    "change.paths.all(a, change.paths.all(b, a == b))",
    "change.paths.map(p, change.paths).size() > 0", "change.paths.filter(p, true).size() > 0",
    "change.paths.exists(p, p in change.paths)", "change.paths.exists(p, size(change.paths) > 0)",
    "change.paths.exists(p, p == 'x') || " * 20 + "false",
    "task.summary.matches('(a+)+$')", "'a'.matches('a{1000}{1000}{1000}')", "'a'.matches('(')",
    "'''\n' || " + nested(4) + " //'''", "'''a'''=='a'", '"""a"""=="a"', "''''''==''",
    "true // && false", "// '\n" + nested(3), "b'\\xff' == b'a'", "'\\ud800' == ''",
    "'\\u{110000}' == ''", "'\\", "'\n'", "r'\\' == ''", "`task`.id == 'a'", "task.`id` == 'a'",
    "task.?id.orValue('') == ''", "optional.of(1).hasValue()", "cel.bind(x, 1, x == 1)",
    "has(task.id)", "dyn(1) == 1", "type(1) == int", "google.protobuf.Any{}", "task{}", "Msg{a: 1}",
    "{'a': 1}['a'] == 1", "duration('9999999999999h') == duration('1s')",
    "timestamp('9999-99-99T00:00:00Z') == timestamp('x')", "getDate()",
    "[1, 2, 3].all(task, task > 0)", "[1].all(1, true)", "[1].all(x)", "[1].all(x, 1)",
    "[1].all(true, true)", "[1].exists(x, x, x)", "all(x, true)", "[1][5] == 1", "[1][-1] == 1",
    "", " ", "\x00", "\x0b", "\u2028", "💥", "'💥' == ''", "task.priority = 1",
    "task.priority === 1",
    "task.priority == 1;", "a b", "1 2", "'a' 'b'", ")", "(", "[", "]", ",", ".", "..", "1..2",
    ".task.id == 'a'", "task.", "task..id", "in", "true in [true", "1", "'x'", "1.5",
    "task.priority",
    "change.paths", "task.priority == 1 ? change.paths : task.id", "true && 1", "'a' < 1",
    "true(1)", "in(1)", "#", "$HOME == ''", "@", "~1 == 0", "1 << 2 == 4", "1 & 1 == 1", "a := 1",
    "for", "while true", "reduce", "x.y.z()", "task.id.size", "size == 1", "0x1F == 31",
    "1_000 == 1",
]  # fmt: skip


@pytest.mark.req("R151")
@pytest.mark.parametrize("expression", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_condition_is_refused_or_answered_at_once(expression) -> None:
    compile_when("true")  # the library's import is not the expression's cost
    many = {"paths": [f"src/{n}.py" for n in range(MAX_PATHS)], "files_changed": MAX_PATHS}

    took: list[float] = []
    for _ in range(3):  # the best counts: collecting a large heap of the test run is not its cost
        started = time.process_time()
        when = compile_when(expression)
        answer = when.holds(TASK, many) if isinstance(when, When) else None
        took.append(time.process_time() - started)

        assert answer in {True, False, None}
    assert min(took) < 0.1


def test_more_than_a_hundred_hostile_conditions_are_tried() -> None:
    assert len(set(HOSTILE)) > 100


# The largest of each shape that is still given to the library, or near it.
DEEP = [
    "(" * 20 + "true" + ")" * 20, "[" * 20 + "]" * 20 + " == []", "!" * 199 + "true",
    "-" * 197 + "1 == 1", "true?true:" * 49 + "true", "&&".join(["true"] * 100),
    "+".join(["1"] * 99) + " == 99", "1==" * 99 + "1", "1 in " * 98 + "[1]", "[1]" + "[0]" * 60,
    "task.id" + ".size()" * 45 + " == 1", "!(" * 20 + "!" * 130 + "true" + ")" * 20,
    "(" * 20 + "true?true:" * 35 + "true" + ")" * 20, "(" * 20 + "+".join(["1"] * 75) + ")" * 20,
]  # fmt: skip


def test_no_condition_that_reaches_the_library_fills_a_small_stack() -> None:
    """In a process of its own, because a stack that overflows in there ends the process.

    A quarter of a megabyte; glibc gives a thread eight megabytes by default.
    """
    program = (
        "import json, sys, threading\n"
        "from lockgate.adapters.config.when import When, compile_when\n"
        "def go():\n"
        "    for it in json.load(sys.stdin):\n"
        "        when = compile_when(it)\n"
        "        if isinstance(when, When):\n"
        "            when.holds({}, {'paths': []})\n"
        "    print('all tried')\n"
        "compile_when('true')\n"
        "threading.stack_size(256 * 1024)\n"
        "thread = threading.Thread(target=go); thread.start(); thread.join()\n"
    )
    tried = json.dumps([*HOSTILE, *DEEP])

    ended = run(
        [sys.executable, "-c", program], input=tried, capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stdout) == (0, "all tried\n"), ended.stderr


def test_a_condition_of_too_many_words_is_refused() -> None:
    refused = compile_when("+".join(["1"] * 101) + " == 101")

    assert refused == Unfit("it has more than 200 words and marks")


WORDS = st.sampled_from([
    "task", "change", ".", ".id", ".priority", ".paths", "(", ")", "[", "]", "'", '"', "'a'", "\\",
    "1", "0", "-", "!", "+", "*", "/", "%", "&&", "||", "==", "!=", "<", "in", "?", ":", ",",
    "true", ".all(", ".exists(", ".size()", ".startsWith(", "size(", "string(", "int(", "x", "p",
    "1e9", "r'", "'''", "//", "\0", "💥",
])  # fmt: skip


@given(st.lists(WORDS, max_size=60))
def test_no_text_at_all_raises_or_crashes(words) -> None:
    when = compile_when(" ".join(words))

    assert isinstance(when, Unfit) or when.holds(TASK, CHANGE) in {True, False}


# --- fails closed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "task", "change"),
    [
        ("10 / task.iteration > 100", {**TASK, "iteration": 0}, CHANGE),
        ("task.priority == 9", {}, CHANGE),
        ("change.paths[0] == 'x'", TASK, {"paths": []}),
        ("task.priority > 9", {**TASK, "priority": "high"}, CHANGE),
        ("change.files_changed == 7", TASK, {}),
    ],
)
def test_a_condition_that_has_no_answer_lets_the_gate_run(expression, task, change) -> None:
    when = compile_when(expression)

    assert isinstance(when, When)
    assert when.holds(task, change)


class Panic(BaseException):
    """As the library's Rust raises it: no Exception."""


class Raises:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def execute(self, context: dict[str, Any], /) -> object:
        raise self.error


def test_a_panic_of_the_library_lets_the_gate_run() -> None:
    assert When("true", Raises(Panic())).holds(TASK, CHANGE)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_user_who_interrupts_is_not_taken_for_an_answer(stop) -> None:
    with pytest.raises(stop):
        When("true", Raises(stop())).holds(TASK, CHANGE)


def test_a_change_with_too_many_paths_lets_the_gate_run() -> None:
    when = compile_when("change.paths.exists(p, p == 'x')")
    paths = [str(n) for n in range(MAX_PATHS + 1)]

    assert isinstance(when, When)
    assert when.holds(TASK, {"paths": paths})
    assert not when.holds(TASK, {"paths": paths[:-1]})
