"""config.toml: what loads, what is wrong with it by key, value and line, and what it may cost."""

import json
import math
import os
import shutil
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from datetime import date
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError
from msgspec.structs import replace

from lockgate.adapters.config.complaints import complaints
from lockgate.adapters.config.layout import TooCostly, lines_of, nearest_line
from lockgate.adapters.config.load import config_hash, json_schema, load_config
from lockgate.adapters.config.schema import config_from, spelled_out
from lockgate.core.config.settings import (
    AgentSettings,
    BudgetSettings,
    Commands,
    EnvSettings,
    Expect,
    MergeFence,
    MergeSettings,
    ProjectSettings,
    SandboxSettings,
    Service,
    ServiceKind,
    Settings,
)
from lockgate.core.config.trust import KEYS as KEYS_OF_TRUST
from lockgate.core.model.gates import (
    CommandGate,
    DifferentialGate,
    Dimension,
    HumanGate,
    ParallelReviewGate,
    Report,
    Where,
)
from lockgate.core.model.limits import Limits, RetryConfig, Strategy
from lockgate.errors import BadConfig

# The interface page's example, with every key at the value shown there.
EVERY_KEY = """\
[project]
base = "main"
agent = "claude"
slots = 3
respawn = "auto"

[commands]
test = "pytest -q --junitxml=$OUT/junit.xml"
typecheck = "mypy src"

[env]
setup = "uv sync"
inputs = ["uv.lock", "pyproject.toml"]
copy = [".env"]
pass = ["PIP_INDEX_URL"]

[tests]
paths = ["tests/**"]

[differential]
strength_seconds = 60

[gates]
formula = "solo"

[[gates.list]]
name = "tests"
type = "command"
command = "pytest -q"
serial = true
fail_fast = false
attempts = 3
timeout = 600
report = "junit"
needs = ["gpu"]
exclusive = ""
on = ["change", "train"]
paths = ["api/**"]
when = "task.priority == 1 && change.paths.exists(p, p.startsWith('api/'))"

[[gates.list]]
name = "code_review"
type = "parallel_review"
dimensions = ["correctness", "security"]
advisory = ["style"]
reviewer = "codex"

[[gates.list]]
name = "human_approval"
type = "human"
prompt = "Review and approve this change"

[[steps]]
name = "red"
phase = "RED"
command = "pytest -q tests/test_new.py"
expect = "fail"
after = []

[[services]]
name = "db"
command = "postgres -D $SCRATCH/pg -p 5432"
ready = "pg_isready -p 5432"

[fleet]
needs = ["linux-arm"]

[retry]
strategy = "auto"
fresh_after_failures = 2
max_iterations = 3

[limits]
step_failures = 3
call_attempts = 3
call_base_delay_ms = 500
call_backoff = 2.0
crashes = 2
review_rounds = 2
escalation_threshold = 5

[sandbox]
level = "auto"
network = false
allow = ["127.0.0.1:5432"]
read = []
memory_mb = 4096
scratch_mb = 8192
session_disk_mb = 20480
pids = 4096

[protect]
paths = [".github/**", "tests/conftest.py"]

[forge]
kind = "github"
repo = ""
auto_merge = "lockgate"
comments = "act"
bots = []
settle = 120
ci_wait = 3600
rounds = 8
sign = false

[forge.intake]
label = ""
max_open = 5

[merge]
mode = "manual"
target = "local"
strategy = "merge"
fence = "wait"
window = 4
batch = 1

[commit]
author = "user"
identity = ""

[budget]
task_usd = 5.0
task_tokens = 0
task_minutes = 120
day_usd = 0.0

[notify]
urls = []
kinds = ["approve", "land", "answer", "stuck", "paused", "red-tip", "budget", "trust", "login"]
urgent = ["red-tip"]
quiet = ""
digest = ""
remind = "4h"
budget = [0.5, 0.8, 1.0]

[agents.mine]
command = ["my-agent", "--prompt-file", "{prompt_file}"]
resume = ["my-agent", "--resume", "{session}", "--prompt-file", "{prompt_file}"]
env = ["MY_AGENT_KEY"]
"""
NO_GATES = '[gates]\nformula = "none"\n'


def loaded(text: str) -> Settings:
    return load_config(text, origin="config.toml")


def refusal(text: str) -> str:
    with pytest.raises(BadConfig) as caught:
        loaded(text)
    return caught.value.why


# --- what loads ---------------------------------------------------------------------------------


@pytest.mark.req("R122", "R137", "R150", "R151")
def test_every_key_of_the_interface_page_arrives() -> None:
    settings = loaded(EVERY_KEY)

    tests, typecheck, differential, review, human = settings.gates
    assert isinstance(tests, CommandGate)
    assert (tests.command, tests.attempts, tests.timeout) == ("pytest -q", 3, 600)
    assert tests.report is Report.JUNIT
    assert tests.place.on == (Where.CHANGE, Where.TRAIN)
    assert tests.place.when.startswith("task.priority == 1")
    assert isinstance(typecheck, CommandGate)
    assert typecheck.command == "mypy src"
    assert isinstance(differential, DifferentialGate)
    assert differential.command == settings.commands.test
    assert isinstance(review, ParallelReviewGate)
    assert review.blocking == (Dimension.CORRECTNESS, Dimension.SECURITY)
    assert (review.advisory, review.reviewer) == ((Dimension.STYLE,), "codex")
    assert isinstance(human, HumanGate)
    inputs = ("uv.lock", "pyproject.toml")
    assert settings.env == EnvSettings("uv sync", inputs, (".env",), ("PIP_INDEX_URL",))
    assert settings.steps[0].expect is Expect.FAIL
    assert settings.services[0] == Service(
        "db", "postgres -D $SCRATCH/pg -p 5432", "pg_isready -p 5432"
    )
    assert settings.sandbox.allow == ("127.0.0.1:5432",)
    assert settings.agents[0].command[0] == "my-agent"
    assert settings.agents[0].env == ("MY_AGENT_KEY",)


@pytest.mark.req("R122", "R137")
def test_what_is_not_written_is_the_default_of_the_interface_page() -> None:
    written = loaded(EVERY_KEY)

    assert loaded(NO_GATES) == replace(
        written,
        formula="none",
        gates=(),
        commands=Commands(),
        env=EnvSettings(),
        test_paths=(),
        steps=(),
        services=(),
        sandbox=replace(written.sandbox, allow=()),
        protect=(),
        needs=(),
        agents=(),
    )


def test_values_other_than_the_defaults_arrive() -> None:
    settings = loaded(
        """
project = {base = "trunk", agent = "mine", slots = 9, respawn = "manual"}
retry = {strategy = "fresh", fresh_after_failures = 5, max_iterations = 6}
limits.crashes = 9
limits.call_backoff = 3
sandbox = {level = "none", network = true, read = ["/opt"], memory_mb = 64}
merge = {mode = "auto", target = "remote", strategy = "squash", fence = "ref", batch = 8}
budget = {task_usd = 1, day_usd = 2.5, task_minutes = 3}
notify.urls = ["env:NTFY"]
agents.mine.command = ["x"]
gates.formula = "none"
"""
    )

    assert settings.project.base == "trunk"
    assert settings.project.slots == 9
    assert settings.retry == RetryConfig(
        strategy=Strategy.FRESH, fresh_after_failures=5, max_iterations=6
    )
    assert settings.limits == Limits(crashes=9, call_backoff=3.0)
    assert settings.sandbox.read == ("/opt",)
    assert settings.merge.batch == 8
    assert settings.merge.fence is MergeFence.REF
    assert settings.budget == BudgetSettings(task_usd=1.0, day_usd=2.5, task_minutes=3)
    assert settings.notify.urls == ("env:NTFY",)
    assert settings.agents == (AgentSettings(name="mine", command=("x",)),)


@pytest.mark.req("R149")
def test_a_listed_gate_overrides_the_formula_s_key_by_key_or_is_added() -> None:
    settings = loaded(
        """
        [commands]
        test = "pytest"
        [gates]
        formula = "quick-review"
        [[gates.list]]
        name = "tests"
        fail_fast = true
        [[gates.list]]
        name = "lint"
        type = "command"
        command = "ruff check"
        [[gates.list]]
        name = "deep"
        type = "multipass-review"
        """
    )

    assert [gate.name for gate in settings.gates] == ["tests", "code_review", "lint", "deep"]
    tests = settings.gates[0]
    assert isinstance(tests, CommandGate)
    assert (tests.command, tests.place.fail_fast, tests.place.serial) == ("pytest", True, True)


def test_an_agent_of_a_package_is_known_from_its_installing_to_its_removal(
    tmp_path, monkeypatch
) -> None:
    about = tmp_path / "theirs-1.dist-info"
    monkeypatch.syspath_prepend(tmp_path)
    os.utime(tmp_path, (1, 1))
    assert load_config(None, origin="here").installed == ()

    about.mkdir()
    (about / "METADATA").write_text("Name: theirs\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[lockgate.harnesses]\ntheirs = theirs:harness\n")
    assert load_config(None, origin="here").installed == ("theirs",)

    shutil.rmtree(about)
    os.utime(tmp_path, (2, 2))
    assert load_config(None, origin="here").installed == ()


def test_an_empty_file_is_a_config_that_sets_no_commands() -> None:
    assert "gate tests has no command" in refusal("")


# --- what is wrong, by line ---------------------------------------------------------------------


WRONG = [
    ('[project]\n\nslots = "3"', "line 3: project.slots = '3' is not allowed: it must be a valid"),
    ("[project]\nslots = 0", "line 2: project.slots = 0 is not allowed: it must be greater than"),
    ("[project]\nslots = true", "project.slots = true is not allowed"),
    ("[project]\nslots = 3.0", "project.slots = 3.0 is not allowed"),
    ("project = 1", "line 1: project = 1 is not allowed"),
    ("[project]\nbase = []", "project.base = a list is not allowed"),
    ("[project]\nbase = {}", "project.base = a table is not allowed"),
    (
        "[project]\nslotz = 3",
        "line 2: project.slotz is not a key of this table; did you mean slots",
    ),
    ("[projects]\n", "line 1: projects is not a key of this table; did you mean project?"),
    ("[env]\nkopy = []", "did you mean copy?"),
    ("[tests]\nzzzzzz = 1", "it has paths"),
    ("[agents.mine]\ncommnd = ['x']", "line 2: agents.mine.commnd is not a key of this table; did"),
    ("[agents.mine]\nenv = ['A']", "line 1: agent mine has no command; give it one"),
    ("[agents.'a b']\ncommand = ['x']", "agents.a b = 'a b' is not allowed: it must match"),
    ("[agents.mine]\ncommand = []", "agents.mine.command = a list is not allowed"),
    ("[[gates.list]]\ntype = 'human'", "line 1: gates.list[0].name is missing"),
    ("[[gates.list]]\nname='a'\n[[gates.list]]\nnam='b'\nname='c'", "line 4: gates.list[1].nam is"),
    (
        "[[gates.list]]\nname='a'\ntype='magic'",
        "line 3: gates.list[0].type = 'magic' is not allowed: ",
    ),
    (
        "[[gates.list]]\nname='a'\ntype='parallel_review'\ndimensions=[\n'style',\n'taste']",
        "line 6: gates.list[0].dimensions[1] = 'taste' is not allowed: it must be 'correctness', ",
    ),
    (
        "[gates]\nformula = 'magic'",
        "line 2: gates.formula = 'magic' is not allowed: it must be 'plain'",
    ),
    ("[gates]\nformula = 3", "line 2: gates.formula = 3 is not allowed"),
    ("[[gates.list]]\nname='a'\ntype=3", "gates.list[0].type = 3 is not allowed"),
    ("steps = 'bdd'", "line 1: steps = 'bdd' is not allowed"),
    ("[retry]\nstrategy = 'same_agent'", "it must be 'same', 'fresh' or 'auto'"),
    ("[budget]\nday_usd = nan", "budget.day_usd = nan is not allowed"),
    ("[budget]\nday_usd = -0.5", "budget.day_usd = -0.5 is not allowed"),
    (
        "[sandbox]\nallow = ['localhost']",
        "line 2: sandbox.allow[0] = 'localhost' is not allowed: it must",
    ),
    ("[project]\nslots = 0x" + "f" * 5000, "project.slots = a very large number is not allowed"),
    ("[project]\nagent = '" + "a" * 500 + "'", "aaaa… is not allowed"),
    ("[project]\nslots = 1979-05-27", "project.slots = datetime.date(1979, 5, 27) is not allowed"),
    ("a = 1\na = 2\n", "it is not TOML: Cannot overwrite a value (at line 2, column 6)"),
    ("a = ", "it is not TOML"),
    ("a = " + "9" * 5000, "it is not TOML"),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_key_or_value_is_named_with_its_line_and_what_is_allowed(text, words) -> None:
    assert words in refusal(text)


MEANINGLESS = [
    ("[[gates.list]]\nname='a'\ntype='command'", "line 3: gate a has no command"),
    ("[[gates.list]]\nname='a'", "line 3: gate a has no type"),
    (
        "[[gates.list]]\nname='a'\ntype='human'\ncommand='x'",
        "line 6: command means nothing for a gate",
    ),
    (
        "[[gates.list]]\nname='a'\ntype='human'\n[[gates.list]]\nname='a'\ntype='human'",
        "line 6: the name 'a' is there 2 times",
    ),
    (
        "[[gates.list]]\nname='a'\ntype='human'\nwhen='task.prio == 1'",
        "line 6: gate a has a `when` that cannot be used: there is no task.prio; there are task.id",
    ),
    ("[project]\nagent='hal'", "line 4: no agent is called 'hal'"),
    (
        "[[steps]]\nname='a'\nphase='RED'\nafter=['b']\ncommand='x'",
        "line 6: step a comes after 'b'",
    ),
    ("[agents.codex]\ncommand=['x']", "line 3: the name codex is taken"),
    ("[agents.codex]\nenv=['X']", "line 3: the name codex is taken"),
    ("[agents.codex]\nfallback='hal'", "line 4: no agent is called 'hal'"),
    ("[agents.codex]\nfallback='codex'", "line 4: agent codex cannot stand in for itself"),
    ("[agents.mine]\nfallback='codex'", "line 3: agent mine has no command"),
]


@pytest.mark.req("R151")
@pytest.mark.parametrize(("text", "words"), MEANINGLESS)
def test_what_is_allowed_but_makes_no_sense_is_named_with_its_line(text, words) -> None:
    assert words in refusal(NO_GATES + text)


@pytest.mark.req("R152")
def test_a_formula_whose_command_is_not_set_is_an_error_where_the_formula_is_chosen() -> None:
    why = refusal('[project]\nbase = "main"\n[gates]\nformula = "code-review"\n')

    assert "line 4: gate tests has no command" in why
    assert "line 4: gate typecheck has no command" in why


def test_every_problem_is_reported_at_once_in_the_order_of_the_file() -> None:
    why = refusal("[retry]\nmax_iterations = 0\n[project]\nslots = 0\nbas = 1\n[merge]\nmode = 1\n")

    lines = [line.split(":")[0].strip() for line in why.splitlines()]
    assert lines == ["4 problems", "line 2", "line 4", "line 5", "line 7"]


def test_a_flood_of_problems_is_cut() -> None:
    why = refusal("".join(f"k{n} = 1\n" for n in range(100)))

    assert why.startswith("100 problems\n  line 1: k0 is")
    assert why.endswith("and 80 more")


def test_the_message_has_its_three_parts() -> None:
    with pytest.raises(BadConfig) as caught:
        load_config("x = 1", origin="main:.lockgate/config.toml")

    assert caught.value.what == "main:.lockgate/config.toml was not loaded"
    assert caught.value.why.startswith("line 1: x is not a key of this table")
    assert "lockgate init --schema" in caught.value.fix
    assert caught.value.exits_with == 2


# --- lines --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1", ("a",), 1),
        ("\n# a = 1\na = 1", ("a",), 3),
        ("[t]\na.b.c = 1", ("t", "a", "b", "c"), 2),
        ("[t]\n\"a b\".'c' = 1", ("t", "a b", "c"), 2),
        ("[ t . u ]\na = 1", ("t", "u", "a"), 2),
        ("[[t]]\na=1\n[[t]]\n\na=2", ("t", 1, "a"), 5),
        ("[[t]]\n[t.u]\na=1\n[[t]]\n[t.u]\na=2", ("t", 1, "u", "a"), 6),
        ("a = '''\nb = 1\n'''\nb = 2", ("b",), 4),
        ('a = """\nb = 1 \\""" \n"""\nb = 2', ("b",), 4),
        ('a = """"x""""\nb = 2', ("b",), 2),
        ("a = [\n1,\n2, # 3\n[4,\n5]\n]", ("a", 1), 3),
        ("a = [\n1,\n2, # 3\n[4,\n5]\n]", ("a", 2, 1), 5),
        ("a = {b = 1, c.d = {e = 2}}\nf = 1", ("a", "c", "d", "e"), 1),
        ("a = [\n{b = 1},\n{b = 1,\n c = [1]}]", ("a", 1, "c"), 4),
        ("a = 1.5\nb = 2", ("b",), 2),
        ("[t]\n", ("t", "missing", "deeper"), 1),
        ("\n[t]\n", ("elsewhere",), 1),
        ("a = 'no end\nb = 1", ("b",), 1),
        ("]\nb = 1", ("b",), 2),
        ("[", ("b",), 1),
        ("'a' 'b' 'c' = 1\nd = 1", ("d",), 2),
    ],
)
def test_a_key_is_found_on_its_line(text, path, line) -> None:
    lines = lines_of(text)

    assert not isinstance(lines, TooCostly)
    assert nearest_line(lines, path) == line


KEYS = st.text("abcXYZ019_-", min_size=1, max_size=6)
VALUES = st.sampled_from(
    ["1", "-1.5", "true", '"x # y"', "'[not.a.table]'", "1979-05-27T07:32:00Z", '"""\na = 1\n"""',
     "'''\n[t]\n'''", "[1,\n 2]", "[ # c\n]", "{}", "{ a = 1, b.c = [2] }", '"\\""', "[[1], ['a']]"]
)  # fmt: skip
NOISE = st.sampled_from(["", "\n", "# comment = 1\n", "  \n\n", "# [t]\n"])
TABLES = st.dictionaries(
    KEYS, st.dictionaries(KEYS, st.tuples(NOISE, VALUES), max_size=5), max_size=5
)


@given(TABLES, st.booleans())
def test_every_key_of_a_generated_file_is_found_on_its_line(tables, quoted) -> None:
    text, expected = "", {}
    for table, entries in tables.items():
        text += f'["{table}"]\n' if quoted else f"[{table}]\n"
        for key, (noise, value) in entries.items():
            text += noise
            expected[table, key] = text.count("\n") + 1
            text += f"{key} = {value}\n"
    tomllib.loads(text)

    lines = lines_of(text)

    assert not isinstance(lines, TooCostly)
    assert {path: lines[path] for path in expected} == expected


# --- costs --------------------------------------------------------------------------------------

K = 250_000
BOMBS = {
    "dotted key": ".".join(["a"] * 20_000) + " = 1",
    "dotted header": "[" + ".".join(["a"] * 20_000) + "]",
    "spaced dots": " . ".join(["a"] * 20_000) + " = 1",
    "quoted dots": ".".join(['"a"'] * 20_000) + " = 1",
    "open lists": "a = " + "[" * 20_000,
    "nested lists": "a = " + "[" * 20_000 + "]" * 20_000,
    "nested tables": "a = " + "{a = " * 20_000,
    "size": "#" * 300_000,
    "no end": "a = " + '"""\\' * 60_000,
    "quotes": "'" * K,
    "double quotes": '"' * K,
    "almost ends": "a = '''" + "''a" * 80_000,
    "digits": "a = " + "9" * K,
    "hex": "[project]\nslots = 0x" + "f" * K,
    "fraction": "a = 1979-05-27T07:32:00." + "9" * K,
    "lines": "\n" * K,
    "keys": "".join(f"k{n} = 1\n" for n in range(2_400)),
    "more keys": "".join(f"k{n} = 1\n" for n in range(25_000)),
    "tables": "".join(f"[k{n}]\n" for n in range(25_000)),
    "gates": "[[gates.list]]\n" * 17_000,
    "numbers": "a = [" + "1, " * 80_000 + "]",
    "escapes": '[project]\nbase = "' + "\\n" * 120_000 + '"',
    "equals": "=" * K,
    "returns": "\r" * K,
    "zeros": "\0" * K,
    "steps": '[[steps]]\nname = "a"\nphase = "RED"\n' * 700,
    "agents": "".join(f'[agents.a{n}]\ncommand = ["x"]\n' for n in range(800)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_text_made_to_cost_time_is_refused_at_once(name) -> None:
    loaded(NO_GATES)  # the imports are not the text's cost

    started = time.process_time()
    refusal(BOMBS[name])
    took = time.process_time() - started

    # Untraced, the best of three is 50 ms at most; a coverage tracer makes that several times as
    # much. Without the limits these take 6 to 28 s.
    assert took < 1


@given(st.text(alphabet="[]{}=.,'\"\\#\n ab1_-", max_size=80))
def test_any_text_loads_or_is_refused_and_nothing_else(text) -> None:
    with suppress(BadConfig):
        loaded(text)


TRICKY: list[object] = [
    True, 0, 1, -1, 10**30, 10**400, 0.5, 1.0, math.nan, math.inf, date(2020, 1, 1), "", "a", "a\n",
    "A <a@b>\n", "env:A", "env:A\n", "o/r\n", "22:00-07:00\n", "4h", "4h\n", "07:00\n",
    "x" * 10_001, "none", "auto", "tdd", [], [1], ["a"], ["a\n"], [""], ["env:A\n"], ["h:1"],
    ["h:1\n"], [0.5], [math.nan], ["a"] * 1_001, ["style"], {}, {"a": "b"}, {"a\n": "b"},
    {"a": {}}, [{}], [{"name": "a\n"}],
]  # fmt: skip


@pytest.mark.parametrize("table", sorted({it.partition(".")[0] for it in KEYS_OF_TRUST}))
def test_a_value_is_allowed_exactly_where_nothing_is_said_of_it(table) -> None:
    """One library reads files that are right, another says what is wrong: they must agree."""
    for key in (it.split(".")[1:] for it in KEYS_OF_TRUST if it.split(".")[0] == table):
        for value in TRICKY:
            inner: Any = reduce(lambda below, name: {name: below}, reversed(key), value)
            for written in (inner, {"a": inner}, [{"name": "a", **inner}]):
                spelled = spelled_out({table: written})
                assert _allowed(spelled) is not bool(complaints(spelled)), written


def _allowed(spelled: dict[str, Any]) -> bool:
    with suppress(ValidationError):
        config_from(spelled)
        return True
    return False


def test_reading_a_file_that_is_right_does_not_import_pydantic_or_cel() -> None:
    program = (
        "import sys, lockgate.adapters.config.load, lockgate.adapters.config.when\n"
        "lockgate.adapters.config.load.load_config(None, origin='a test')\n"
        "print([it for it in ('pydantic', 'cel', 'rich') if it in sys.modules])"
    )

    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert out.stdout.strip() == "[]"


# --- the hash, the schema -----------------------------------------------------------------------


def test_a_comment_or_another_order_does_not_change_the_hash() -> None:
    one = loaded('[merge]\nmode = "auto"\n[gates]\nformula = "none"')
    other = loaded('# why\ngates.formula = "none"\nmerge.mode = "auto"  # because')

    assert config_hash(one) == config_hash(other)
    assert len(config_hash(one)) == 64


@pytest.mark.parametrize(
    "changed",
    [
        {"formula": "none"},
        {"project": ProjectSettings(slots=4)},
        {"sandbox": SandboxSettings(network=True)},
        {"merge": MergeSettings(window=5)},
        {"limits": Limits(crashes=3)},
        {"gates": ()},
        {"needs": ("gpu",)},
    ],
)
def test_any_change_of_meaning_changes_the_hash(changed) -> None:
    settings = loaded(EVERY_KEY)

    assert config_hash(replace(settings, **changed)) != config_hash(settings)


def test_labels_are_in_the_hash_only_where_they_are_written() -> None:
    text = NO_GATES + "[[gates.list]]\nname='a'\ntype='command'\ncommand='x'\n"

    assert config_hash(loaded(text + "needs = []")) == config_hash(loaded(text))
    assert config_hash(loaded(text + "needs = ['gpu']")) != config_hash(loaded(text))
    assert loaded(text + "needs = ['gpu']\n[fleet]\nneeds = ['arm']").needs == ("arm",)


@pytest.mark.parametrize("label", ["lead", "any", "a b", "gpu+arm", ""])
def test_what_no_host_can_have_for_a_label_is_refused(label) -> None:
    with pytest.raises(BadConfig, match="line"):
        loaded(f"[fleet]\nneeds = [{label!r}]")
    with pytest.raises(BadConfig, match="line"):
        loaded(f"[[gates.list]]\nname='a'\ntype='command'\ncommand='x'\nneeds=[{label!r}]")


def test_two_kinds_of_gate_with_the_same_fields_differ_in_the_hash() -> None:
    text = NO_GATES + "[[gates.list]]\nname='a'\nserial=true\non=['change']\ncommand='x'\ntype="

    hashes = {config_hash(loaded(f"{text}{kind!r}")) for kind in ("command", "differential")}

    assert len(hashes) == 2


def test_the_schema_names_every_table_and_is_json() -> None:
    schema = json_schema()

    assert set(tomllib.loads(EVERY_KEY)) == set(schema["properties"])
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"tdd"} <= set(json.dumps(schema).replace('"', " ").split())
    assert set(tomllib.loads(EVERY_KEY)["env"]) == set(schema["$defs"]["Env"]["properties"])


def test_a_service_of_a_known_kind_is_called_by_it_and_has_its_variables() -> None:
    written = """
[[services]]
service = "postgres"
prepare = "alembic upgrade head"
inputs = ["migrations"]
env = { TEST_URL = "postgresql+psycopg://$PGHOST" }
"""

    [service] = loaded(f'[gates]\nformula = "none"\n{written}').services

    assert (service.name, service.kind) == ("postgres", ServiceKind.POSTGRES)
    assert (service.prepare, service.inputs) == ("alembic upgrade head", ("migrations",))
    assert service.env == (("TEST_URL", "postgresql+psycopg://$PGHOST"),)


def test_a_kind_of_service_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(BadConfig, match="service"):
        loaded('[[services]]\nservice = "oracle"\n')


LOOKED_AT = """
from lockgate.adapters.config import schema
for table in (schema.Config, schema.Project, schema.GateEntry):
    table.__annotations__.clear()
print(schema.config_from({"project": {"base": "trunk"}}).project.base)
"""


def test_the_types_of_a_config_are_looked_at_before_threads_can_do_so_at_once() -> None:
    """msgspec ends the process where two threads look at a type for the first time."""
    done = subprocess.run(
        [sys.executable, "-c", LOOKED_AT], check=False, capture_output=True, text=True
    )

    assert done.stdout == "trunk\n", done.stderr
