"""Whether an agent has a login, and what is said where it has none."""

import pytest

from lockgate.core.model.agents import Source, missing_login, refused_login

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
