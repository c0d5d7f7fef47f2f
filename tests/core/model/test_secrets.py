"""Which values are secrets, the forms they are known in, and texts without them."""

import base64
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.events import GateCompleted
from lockgate.core.model.facts import redacted
from lockgate.core.model.findings import Finding, Location, Priority
from lockgate.core.model.results import Failed
from lockgate.core.model.secrets import Secret, held_back, hiding, secrets_in, secrets_in_file
from lockgate.core.model.task import Status
from tests.given import ID, a_task

KEY = 'sk-ant/api03+"A b\\C=Zü9876'
SECRET = Secret("ANTHROPIC_API_KEY", KEY)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("ANTHROPIC_API_KEY", True),
        ("GH_TOKEN", True),
        ("CLAUDE_CODE_OAUTH_TOKEN", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("db_password", True),
        ("ANTHROPIC_MODEL", False),
        ("ANTHROPIC_BASE_URL", False),
        ("MONKEY", False),
    ],
)
def test_a_variable_is_a_secret_by_its_name(name, secret) -> None:
    assert bool(secrets_in({name: "v" * 16})) is secret


def test_what_is_marked_is_one_and_what_is_short_is_none() -> None:
    given = {"MINE": "m" * 16, "OTHER": "o" * 16, "A_TOKEN": "t" * 15}

    assert secrets_in(given, ("MINE",)) == (Secret("MINE", "m" * 16),)


def test_the_login_in_a_proxys_address_is_one() -> None:
    found = secrets_in({"HTTPS_PROXY": "http://me:a-long-password@proxy:8080"})

    assert found == (Secret("HTTPS_PROXY", "me:a-long-password"),)


def test_of_a_key_of_several_lines_each_counts_but_its_frame() -> None:
    pem = f"-----BEGIN PRIVATE KEY-----\n{'a' * 64}\n{'b' * 20}\n-----END PRIVATE KEY-----\n"

    assert [it.value for it in secrets_in({"A_KEY": pem})] == ["a" * 64, "b" * 20]


def test_every_long_value_of_a_file_of_variables_is_one() -> None:
    text = (
        "# a comment\nDATABASE_URL=postgres://u:p@h/name\nexport B='quoted value 0123'\n"
        'C="short"\nnot a line\nD: yaml-like-value-0123\n'
    )

    assert [(it.name, it.value) for it in secrets_in_file(text)] == [
        ("DATABASE_URL", "postgres://u:p@h/name"),
        ("B", "quoted value 0123"),
        ("D", "yaml-like-value-0123"),
    ]


FORMS = {
    "plain": KEY,
    "in a line": f"export KEY={KEY} # mine",
    "JSON": json.dumps({"key": KEY}),
    "JSON as it is": json.dumps({"key": KEY}, ensure_ascii=False),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "base64 behind one byte": base64.b64encode(f"x{KEY}y".encode()).decode(),
    "base64 behind two bytes": base64.b64encode(f"xx{KEY}yyy".encode()).decode(),
    "base64 for addresses": base64.urlsafe_b64encode(f"xx{KEY}".encode()).decode(),
    "percent-encoded": quote(KEY, safe=""),
    "percent-encoded path": quote(KEY),
    "form": quote_plus(KEY),
    "small percent": re.sub("%..", lambda it: it[0].lower(), quote(KEY, safe="")),
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_secret_is_hidden_in_every_form(text) -> None:
    shown = hiding((SECRET,))(text)

    assert "[secret ANTHROPIC_API_KEY]" in shown
    assert "api03" not in shown


@given(before=st.binary(max_size=9), value=st.text("abcXYZ019+/=", min_size=16), after=st.binary())
def test_base64_hides_no_secret_whatever_stands_around_it(before, value, after) -> None:
    text = base64.b64encode(before + value.encode() + after).decode()

    assert "[secret K]" in hiding((Secret("K", value),))(text)


@given(text=st.text(st.characters(exclude_categories=())))
def test_a_text_without_a_secret_stays_as_it_is(text) -> None:
    assert hiding((SECRET,))(text) == text


class _Deep(Struct, frozen=True):
    texts: frozenset[str]
    by: dict[str, list[str]]


def test_every_text_of_a_decision_is_hidden_and_nothing_else_changes() -> None:
    finding = Finding(Priority.P1_MAJOR, f"it printed {KEY}", Location(KEY, 3))
    task = a_task(Status.WORKING, summary=KEY)
    decision = Decision(
        task,
        events=(GateCompleted(ID, "tests", "failed", KEY),),
        results=(Failed("tests", (finding,)),),
        body=f"## Handoff\n{KEY}\n",
    )

    shown = redacted(decision, hiding((SECRET,)))

    assert KEY not in repr(shown)
    assert repr(KEY)[1:-1] not in repr(shown)
    assert (shown.task.status, shown.task.id, shown.task.pinned) == (
        task.status,
        task.id,
        task.pinned,
    )
    assert redacted(_Deep(frozenset({KEY}), {"a": [KEY]}), hiding((SECRET,))) == _Deep(
        frozenset({"[secret ANTHROPIC_API_KEY]"}), {"a": ["[secret ANTHROPIC_API_KEY]"]}
    )


@pytest.mark.parametrize(
    ("text", "length"),
    [(b"see se", 2), (b"see secret.", 0), (b"see", 0), (b"top", 3), (b"a top s", 1), (b"", 0)],
)
def test_the_end_of_a_text_is_held_back_where_a_secret_may_begin_in_it(text, length) -> None:
    assert held_back(text, (b"secret", b"topper")) == length
