"""Who a commit is by, and what trailers it carries."""

import pytest

from lockgate.core.model.commits import (
    Author,
    Person,
    agent_person,
    byline,
    person_in,
    unsigned,
    with_trailers,
)

ADA = Person("Ada", "ada@example.com")
CODEX = Person("codex", "codex@localhost")


def test_the_users_name_is_on_the_work_and_the_agent_is_its_coauthor() -> None:
    found = byline(ADA, "codex", Author.USER)

    assert (found.author, found.committer) == (ADA, ADA)
    assert found.trailers == ("Co-authored-by: codex <codex@localhost>",)


def test_an_agent_that_is_the_author_is_no_coauthor() -> None:
    found = byline(ADA, "codex", Author.AGENT)

    assert (found.author, found.committer, found.trailers) == (CODEX, ADA, ())


def test_without_an_identity_of_the_user_the_agents_own_is_taken() -> None:
    found = byline(Person(), "codex", Author.USER, signoff=True)

    assert (found.author, found.committer, found.trailers) == (CODEX, CODEX, ())


def test_a_sign_off_is_the_users() -> None:
    found = byline(ADA, "codex", Author.AGENT, signoff=True)

    assert found.trailers == ("Signed-off-by: Ada <ada@example.com>",)


def test_claude_is_named_as_its_own_program_names_it() -> None:
    assert str(agent_person("claude")) == "Claude <noreply@anthropic.com>"
    assert agent_person("claude-live") == agent_person("claude")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("Fix it", "Fix it\n\nA: b\n"),
        ("Fix it\n\nBecause.\n", "Fix it\n\nBecause.\n\nA: b\n"),
        ("Fix it\n\nLockgate-Task: x\n", "Fix it\n\nLockgate-Task: x\nA: b\n"),
        ("Fix it\n\nA: b\n", "Fix it\n\nA: b\n"),
        ("Fix: it\n", "Fix: it\n\nA: b\n"),
        ("Fix it\n\nas he said: so\n", "Fix it\n\nas he said: so\n\nA: b\n"),
    ],
)
def test_trailers_stand_at_the_end_each_once(message, said) -> None:
    assert with_trailers(message, ("A: b",)) == said


def test_a_message_without_trailers_stays_as_it_is() -> None:
    assert with_trailers("Fix it\n", ()) == "Fix it\n"


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("Release Bot <bot@acme.dev>", Person("Release Bot", "bot@acme.dev")),
        ("", None),
        ("Bot", None),
        ("Bot <>", None),
        ("Bot <a@b> more", None),
        (" <a@b>", None),
        ("Bot <a<b@c>", None),
    ],
)
def test_an_identity_is_a_name_and_an_address(text, person) -> None:
    assert person_in(text) == person


def test_a_signature_that_cannot_be_made_is_told_with_gits_words() -> None:
    assert unsigned("no key") == "commit.gpgsign is set, and git could not sign a commit: no key"
