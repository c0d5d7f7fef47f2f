"""`lockgate web`: what it refuses, and the links and tokens that it prints."""

import pytest

from lockgate.bootstrap.outside import web_logins_of
from tests.faces.shell import Shell


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("--person-header", "X-Remote-User"), "over TCP anybody can send a header"),
        (("--listen", "0.0.0.0"), "a login must be encrypted"),  # noqa: S104 - it is refused
        (("--url", "ftp://x"), "is no address"),
        (("--socket", "{place}/s", "--port", "0"), "people elsewhere reach it by a name"),
    ],
)
def test_what_would_not_be_safe_is_refused(shell: Shell, argv: tuple[str, ...], why: str) -> None:
    said = [it.format(place=shell.place) for it in argv]

    answer = shell.run("web", *said)

    assert answer.code == 1
    assert why in answer.err


def test_a_link_needs_a_board_that_is_served(shell: Shell) -> None:
    answer = shell.run("web", "login")

    assert answer.code == 1
    assert "has not been served yet" in answer.err


def test_a_link_is_printed_and_drawn(shell: Shell) -> None:
    app = shell.app()
    web_logins_of(app).reached_at("http://lg-1.localhost:8440")
    app.close()

    text = shell.did("web", "login", "--qr")

    assert text.startswith("http://lg-1.localhost:8440/login?link=")
    assert "█" in text or "▀" in text
    assert shell.run("web", "login", "--person", "nobody").code == 1


def test_a_token_is_printed_once_and_revoked(shell: Shell) -> None:
    token = shell.did("web", "token", "ci", "--read-only").strip()

    assert len(token) > 30
    assert "there is one of that name" in shell.run("web", "token", "ci").err
    shell.did("web", "token", "ci", "--revoke")
    assert shell.run("web", "token", "ci", "--revoke").code == 1
