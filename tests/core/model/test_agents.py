"""Whether an agent has a login, and what is said where it has none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.model.agents import (
    Source,
    login_of,
    missing_login,
    refused_login,
    whose_turn,
)

S = Source


@pytest.mark.parametrize("source", [S.STORED, S.ENVIRONMENT])
def test_one_key_that_reaches_the_agent_is_a_login(source) -> None:
    assert missing_login("claude", {"ONE": S.NONE, "TWO": source, "THREE": S.SHELL}) is None


def test_an_agent_without_keys_needs_no_login() -> None:
    assert missing_login("scripted", {}) is None


@pytest.mark.parametrize(
    ("source", "says", "does"),
    [
        (S.NONE, "claude is not logged in", "lockgate auth claude"),
        (S.UNSET, "told to read for KEY is not set", "lockgate auth claude"),
        (S.SHELL, "KEY is set in this shell, but the orchestrator", "lockgate down"),
    ],
)
def test_why_an_agent_has_no_login_is_said_with_the_command_that_helps(source, says, does) -> None:
    found = missing_login("claude", {"OTHER": S.NONE, "KEY": source})

    assert found is not None
    assert says in found.why
    assert found.why.startswith("claude is not logged in")
    assert does in found.fix


@pytest.mark.parametrize(("said", "shown"), [("status 401", " (status 401)"), ("", "")])
def test_a_refused_login_is_told_with_what_to_do(said, shown) -> None:
    told = refused_login("codex", said, "lockgate task update x --status working")

    assert told == (
        f"codex's login was refused{shown}; run: lockgate auth codex,"
        " then: lockgate task update x --status working"
    )


NAMES = st.sampled_from(("claude", "codex", "gemini", "opencode"))
AGENTS = st.lists(NAMES, min_size=1, unique=True)
LIMITED = st.dictionaries(NAMES, st.floats(min_value=1, max_value=9e9))


def test_two_agents_with_one_key_have_one_login_and_the_key_cannot_be_read_from_it() -> None:
    assert login_of("claude", "sk-1234") == login_of("claude-live", "sk-1234")
    assert login_of("claude", "sk-1234") != login_of("claude", "sk-1235")
    assert "1234" not in login_of("claude", "sk-1234")


def test_agents_without_a_key_share_nothing() -> None:
    assert login_of("one", "") != login_of("two", "")


@given(agents=AGENTS, limited=LIMITED)
def test_the_first_agent_that_is_not_limited_has_its_turn(agents, limited) -> None:
    agent, until = whose_turn(agents, limited)

    free = [it for it in agents if it not in limited]
    if free:
        assert (agent, until) == (free[0], 0.0)
    else:
        assert until == limited[agent] == min(limited[it] for it in agents)


@given(agents=AGENTS, limited=LIMITED)
def test_an_agent_waits_only_where_all_that_may_stand_in_are_limited(agents, limited) -> None:
    _, until = whose_turn(agents, limited)

    assert (until > 0) == all(it in limited for it in agents)
