"""Settings: the defaults of the interface page, what a task pins, what is wrong with them."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.config.checks import Problem, problems, repeated_gates
from lockgate.core.config.settings import (
    AgentSettings,
    BudgetSettings,
    ProjectSettings,
    Respawn,
    SandboxLevel,
    SandboxSettings,
    Service,
    ServiceKind,
    Settings,
    Step,
    in_turn,
    known_agents,
    labels_in,
    pin,
    programs_in,
    protected_paths,
    runs_bare,
    stand_ins,
)
from lockgate.core.model.agents import file_agent
from lockgate.core.model.gates import (
    CommandGate,
    Dimension,
    Gate,
    HumanGate,
    ParallelReviewGate,
    Placement,
    Where,
    WrittenGate,
    configured,
)
from lockgate.core.model.limits import Limits, RetryConfig, Strategy
from lockgate.core.model.task import AgentPhase, Budget, GateKind, GateRef

PLAIN = Settings(formula="none", gates=())
CHANGE = Placement(serial=True, on=(Where.CHANGE,))


def with_gate(kind: GateKind, **keys: Any) -> Settings:
    written = WrittenGate(name="g", **keys)
    return replace(PLAIN, gates=(configured(written, kind, "true"),))


def says(settings: Settings) -> str:
    return " | ".join(it.says for it in problems(settings))


@pytest.mark.req("R137")
def test_the_defaults_are_those_of_the_sources() -> None:
    assert PLAIN.retry == RetryConfig(
        strategy=Strategy.AUTO, fresh_after_failures=2, max_iterations=3
    )
    assert PLAIN.limits == Limits()
    assert PLAIN.project == ProjectSettings(base="main", agent="claude", slots=3)
    assert problems(PLAIN) == ()


def test_a_task_pins_the_limits_and_the_gates_that_judge_its_change() -> None:
    both = CommandGate(name="tests", place=CHANGE, command="true")
    train = replace(both, name="slow", place=replace(CHANGE, on=(Where.TRAIN,)))
    settings = replace(PLAIN, gates=(both, train), limits=Limits(crashes=7))

    pinned = pin(settings, "c0ffee", "abc")

    assert pinned.gates == (GateRef("tests", GateKind.COMMAND, serial=True),)
    assert (pinned.base_commit, pinned.config_hash) == ("c0ffee", "abc")
    assert pinned.limits.crashes == 7
    assert pinned.respawn


def test_a_task_pins_its_budget_and_which_gates_stop_it_at_once() -> None:
    fast = replace(CHANGE, fail_fast=True)
    gates = (
        CommandGate(name="licence", place=fast, command="true"),
        CommandGate(name="tests", place=CHANGE, command="true"),
    )
    budget = BudgetSettings(task_usd=2.5, task_tokens=100, task_minutes=7, day_usd=9.0)

    pinned = pin(replace(PLAIN, gates=gates, budget=budget), "c", "h")

    assert pinned.budget == Budget(usd=2.5, tokens=100, minutes=7)
    assert [(it.name, it.fail_fast) for it in pinned.gates] == [("licence", True), ("tests", False)]


@pytest.mark.parametrize("level", SandboxLevel)
def test_a_task_pins_whether_its_agents_are_enclosed(level) -> None:
    settings = replace(PLAIN, sandbox=SandboxSettings(level=level))

    assert pin(settings, "c", "h").sandboxed is (level is SandboxLevel.AUTO)


def test_manual_respawn_is_pinned_as_such() -> None:
    settings = replace(PLAIN, project=ProjectSettings(respawn=Respawn.MANUAL))

    assert not pin(settings, "c", "h").respawn


@pytest.mark.req("R122")
def test_the_config_is_protected_whatever_is_written() -> None:
    paths = protected_paths(replace(PLAIN, protect=(".lockgate/**", "secrets/**")))

    assert paths == (".lockgate/**", "secrets/**")


def test_an_agent_of_the_user_s_own_is_known() -> None:
    mine = AgentSettings(name="mine", command=("my-agent",))
    settings = replace(PLAIN, agents=(mine,), project=ProjectSettings(agent="mine"))

    assert known_agents(settings)[-1] == "mine"
    assert problems(settings) == ()


# --- what is wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "fix"),
    [
        ("tests", GateKind.COMMAND, "set [commands] test"),
        ("typecheck", GateKind.COMMAND, "set [commands] typecheck"),
        ("differential", GateKind.DIFFERENTIAL, "set [commands] test"),
        ("lint", GateKind.COMMAND, 'give it command = "…"'),
    ],
)
@pytest.mark.parametrize("command", ["", "  "])
def test_a_gate_without_a_command_is_a_problem_and_never_a_pass(name, kind, fix, command) -> None:
    gate: Gate = configured(WrittenGate(name=name), kind, command)

    (found,) = problems(replace(PLAIN, gates=(gate,)))

    assert found.where == ("gates", "list", name, "command")
    assert found.says.endswith(fix)


@pytest.mark.parametrize(
    ("kind", "keys", "words"),
    [
        (GateKind.COMMAND, {"on": ()}, "runs nowhere"),
        (GateKind.HUMAN, {"on": (Where.TRAIN,)}, "judges the change"),
        (GateKind.PARALLEL_REVIEW, {"on": (Where.CHANGE, Where.TRAIN)}, "judges the change"),
        (GateKind.MULTIPASS_REVIEW, {"reviewer": "hal"}, "no agent is called 'hal'"),
        (GateKind.PARALLEL_REVIEW, {"dimensions": ()}, "could never fail"),
    ],
)
def test_a_gate_that_cannot_do_its_work_is_named(kind, keys, words) -> None:
    assert words in says(with_gate(kind, **keys))


def test_a_review_with_only_advisory_dimensions_could_never_fail() -> None:
    style = (Dimension.STYLE,)
    gate = ParallelReviewGate(name="g", place=CHANGE, dimensions=style, advisory=style)

    assert "could never fail" in says(replace(PLAIN, gates=(gate,)))


@pytest.mark.parametrize("kind", GateKind)
def test_a_gate_with_its_defaults_has_no_problem(kind) -> None:
    assert problems(with_gate(kind)) == ()


def step(name: str, *after: str, command: str = "true") -> Step:
    return Step(name=name, phase=AgentPhase.RED, command=command, after=after)


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ((step("a"), step("b", "a")), ""),
        ((step("a", "b"),), "comes after 'b', and no step has that name"),
        ((step("a", "b"), step("b", "a")), "in a circle: a after b after a"),
        ((step("a"), step("a")), "the name 'a' is there 2 times"),
        ((step("a", command=" "),), "step a has no command"),
    ],
)
def test_steps_must_form_a_graph_that_ends(steps, words) -> None:
    assert words in says(replace(PLAIN, steps=steps))
    assert bool(says(replace(PLAIN, steps=steps))) is bool(words)


def test_an_unknown_agent_and_a_taken_name_are_problems() -> None:
    settings = replace(
        PLAIN,
        project=ProjectSettings(agent="hal"),
        agents=(AgentSettings(name="codex", command=("x",)),),
        services=(Service("db", "x"), Service("db", "y")),
    )

    assert "no agent is called 'hal'" in says(settings)
    assert "the name codex is taken" in says(settings)
    assert "the name 'db' is there 2 times" in says(settings)


def test_gates_listed_twice_are_named_once() -> None:
    found = repeated_gates(["tests", "lint", "tests"])

    assert [it.where for it in found] == [("gates", "list", "tests")]
    assert isinstance(found[0], Problem)


def test_the_name_of_the_gate_that_protected_paths_add_is_taken() -> None:
    place = Placement(serial=True, on=(Where.CHANGE,))
    settings = Settings(formula="none", gates=(HumanGate("protected-files", place),))

    [problem] = problems(settings)

    assert "choose another" in problem.says


def test_only_a_file_must_be_enclosed() -> None:
    bare = replace(PLAIN, sandbox=SandboxSettings(level=SandboxLevel.NONE))

    assert runs_bare(bare, file_agent("agent.sh", "0" * 64))
    assert not runs_bare(bare, "claude")
    assert not runs_bare(PLAIN, file_agent("agent.sh", "0" * 64))


@pytest.mark.parametrize(
    ("service", "words"),
    [
        (Service("db", kind=ServiceKind.POSTGRES), ""),
        (Service("db", kind=ServiceKind.POSTGRES, prepare="x", inputs=("a/b",)), ""),
        (Service("db", "x", kind=ServiceKind.POSTGRES), "leave out command and ready"),
        (Service("db"), 'a service needs service = "postgres" or "redis"'),
        (Service("", "x"), "or a name and a command"),
        (Service("db", "x", inputs=("a",)), "service db has inputs and no prepare"),
        (Service("db", "x", prepare="x", inputs=("../a",)), "leads out of the repository"),
        (Service("db", "x", prepare="x", inputs=("/a",)), "leads out of the repository"),
    ],
)
def test_a_service_is_of_one_kind_and_its_inputs_lie_in_the_repository(service, words) -> None:
    found = says(replace(PLAIN, services=(service,)))

    assert words in found
    assert bool(found) is bool(words)


NAMES = st.sampled_from(("claude", "codex", "gemini", "mine"))
FALLBACKS = st.dictionaries(NAMES, NAMES)


def _with(fallbacks: dict[str, str]) -> Settings:
    pairs = fallbacks.items()
    return replace(
        PLAIN, agents=tuple(AgentSettings(name=it, fallback=other) for it, other in pairs)
    )


@given(fallbacks=FALLBACKS, agent=NAMES)
def test_an_agent_is_followed_by_its_fallbacks_each_once_however_they_point(
    fallbacks, agent
) -> None:
    found = in_turn(_with(fallbacks), agent)

    assert found[0] == agent
    assert len(set(found)) == len(found)
    assert all(fallbacks[one] == two for one, two in pairwise(found))
    assert fallbacks.get(found[-1], agent) in found


@given(fallbacks=FALLBACKS, agent=NAMES)
def test_whoever_may_work_in_anothers_place_is_among_the_stand_ins(fallbacks, agent) -> None:
    settings = _with(fallbacks)

    others = set(in_turn(settings, agent)[1:])
    assert others <= set(stand_ins(settings))
    assert not others or agent in stand_ins(settings)


def test_an_agent_that_only_names_its_fallback_adds_no_agent() -> None:
    assert known_agents(_with({"claude": "codex"})) == known_agents(PLAIN)


def test_a_task_pins_whether_it_goes_on_by_itself_after_a_limit() -> None:
    manual = replace(PLAIN, project=ProjectSettings(resume=Respawn.MANUAL))

    assert pin(PLAIN, "c", "h").resume
    assert not pin(manual, "c", "h").resume


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (AgentSettings(name="claude", fallback="codex"), ""),
        (AgentSettings(name="mine", command=("x",), fallback="codex"), ""),
        (AgentSettings(name="theirs", fallback="codex"), ""),
        (AgentSettings(name="mine", fallback="codex"), "agent mine has no command"),
        (AgentSettings(name="claude", env=("KEY",)), "the name claude is taken"),
        (AgentSettings(name="claude", fallback="claude"), "claude cannot stand in for itself"),
        (AgentSettings(name="claude", fallback="hal"), "no agent is called 'hal'"),
    ],
)
def test_a_known_agent_has_a_fallback_and_no_command_and_another_has_a_command(
    agent, words
) -> None:
    found = says(replace(PLAIN, agents=(agent,), installed=("theirs",)))

    assert words in found
    assert bool(found) is bool(words)


def test_a_path_to_read_is_absolute_or_begins_at_home() -> None:
    reads = replace(PLAIN, sandbox=SandboxSettings(read=("/opt/x", "~", "~/keys", "keys")))

    assert problems(reads) == (
        Problem(("sandbox", "read"), "the path 'keys' is relative; begin it with / or ~/"),
    )


def test_a_word_of_lockgates_own_is_no_label() -> None:
    gate = CommandGate(
        name="g", place=Placement(serial=True, on=(Where.TRAIN,)), command="x", needs=("gpu", "any")
    )
    needs = replace(PLAIN, needs=("lead",), gates=(gate,))

    assert [it.where for it in problems(needs)] == [
        ("gates", "list", "g", "needs"),
        ("fleet", "needs"),
    ]
    assert labels_in(needs) == ("lead", "gpu", "any")


def test_the_words_of_an_agents_commands_that_may_be_files_of_the_repository() -> None:
    mine = AgentSettings(
        name="mine",
        command=("sh", "./agent.sh", "-v", "{prompt}"),
        resume=("/usr/bin/env", "again.py"),
        fallback="",
    )
    other = replace(mine, name="other", command=("other.sh",), resume=())

    assert programs_in(replace(PLAIN, agents=(mine, other)), "mine") == (
        "sh",
        "./agent.sh",
        "again.py",
    )
