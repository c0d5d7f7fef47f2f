"""`lockgate web`: what it refuses, and the links and tokens that it prints."""

import pytest

from lockgate.bootstrap.outside import for_person, web_logins_of
from lockgate.core.model.people import Right
from lockgate.errors import Refused
from lockgate.faces.cli.operate.web import served_at
from lockgate.faces.web.serve import Listening
from tests.faces.shell import Shell


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("--person-header", "X-Remote-User"), "over TCP anybody can send a header"),
        (("--listen", "0.0.0.0"), "a login must be encrypted"),  # noqa: S104 - it is refused
        (("--url", "ftp://x"), "is no address"),
        (("--url", "board.lan"), "is no address"),
        (("--socket", "{place}/s", "--port", "0"), "people elsewhere reach it by a name"),
    ],
)
def test_what_would_not_be_safe_is_refused(shell: Shell, argv: tuple[str, ...], why: str) -> None:
    said = [it.format(place=shell.place) for it in argv]

    answer = shell.run("web", *said)

    assert answer.code == 1
    assert why in answer.err


@pytest.fixture
def listening(monkeypatch) -> list[Listening]:
    """Where `lockgate web` would have listened: nothing is served."""
    found = list[Listening]()

    def refuse(at: Listening) -> None:
        found.append(at)
        raise Refused("nothing was served", why="this is a test", fix="none")

    monkeypatch.setattr("lockgate.faces.web.serve.opened", refuse)
    return found


ORIGINS = [
    ("https://Board.example.org:443/", "https://board.example.org"),
    ("HTTPS://board.example.org:8443", "https://board.example.org:8443"),
    ("http://board.lan", "http://board.lan"),  # a proxy is in front
    ("http://Board.lan:80", "http://board.lan"),
    ("", ""),
]


@pytest.mark.parametrize(("url", "origin"), ORIGINS)
def test_an_address_is_what_browsers_make_of_it(
    shell: Shell, listening: list[Listening], url: str, origin: str
) -> None:
    shell.run("web", "--url", url)

    assert [it.url for it in listening] == [origin]


def test_the_address_of_a_team_is_what_browsers_make_of_it(
    shell: Shell, listening: list[Listening]
) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "settings.toml").write_text('[server]\nurl = "https://Build.example.org:443/"\n')

    shell.run("web", "--team", "--api", "https://h1.lan")
    app = shell.app()

    assert [(it.url, it.api) for it in listening] == [
        ("https://build.example.org", "https://h1.lan")
    ]
    assert served_at(app, "127.0.0.1:8443") == ("127.0.0.1", 8443)
    app.close()


@pytest.mark.parametrize("url", ["https://build/lockgate", "https://build?a=b", "https://build#a"])
def test_an_address_with_a_path_is_refused(
    shell: Shell, listening: list[Listening], url: str
) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "settings.toml").write_text(f'[server]\nurl = "{url}"\n')
    app = shell.app()

    assert "has more than a host and a port" in shell.run("web", "--url", url).why
    assert "has more than a host and a port" in shell.run("web", "--team").why
    with pytest.raises(Refused, match="has more than a host and a port"):
        served_at(app, "127.0.0.1:8443")
    assert listening == []
    app.close()


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


@pytest.mark.parametrize(
    ("listen", "settings", "why"),
    [
        ("8443", "", "is not HOST:PORT"),
        ("127.0.0.1:99999", "", "is not HOST:PORT"),
        ("build:8443", "", "there is no certificate"),
        ("[::]:8443", "", "there is no certificate"),
        ("build:8443", 'certificate = "none.pem"', "cannot be used: No such file"),
        ("build:8443", "certificate = 1", "must be text"),
        ("build:8443", 'projects = "x"', "must be a list of paths"),
        ("build:8443", "projects = [1]", "must be a list of paths"),
        ("build:8443", 'certificates = "x"', "certificate key url ssh projects"),
        ("127.0.0.1:1", 'url = "http://build"', "must begin with https://"),
    ],
)
def test_a_server_without_what_makes_it_safe_is_not_started(
    shell: Shell, listen: str, settings: str, why: str
) -> None:
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "settings.toml").write_text(f"[server]\n{settings}\n")

    answer = shell.run("up", "--listen", listen)

    assert answer.code in {1, 2}
    assert why in answer.why


def test_a_server_for_every_address_needs_a_url(shell: Shell, monkeypatch) -> None:
    monkeypatch.setattr("lockgate.bootstrap.team.check_certificate", lambda *_: None)
    shell.home.mkdir(parents=True, exist_ok=True)
    (shell.home / "settings.toml").write_text('[server]\ncertificate = "x"\n')

    assert (
        "by a name that this command does not know" in shell.run("up", "--listen", "0.0.0.0:1").why
    )


def test_only_an_admin_lets_somebody_else_in(shell: Shell) -> None:
    app = shell.app()
    app.members.add("ann", Right.LAND, None, app.caller)
    app.members.add("bob", Right.LOOK, None, app.caller)
    ann, bob = (for_person(app, name, "token x") for name in ("ann", "bob"))
    logins = web_logins_of(app)
    logins.token("bob", "ci", app.caller, read_only=False)

    with pytest.raises(Refused, match="needs the right to admin"):
        logins.link("bob", ann.caller)
    with pytest.raises(Refused, match="needs the right to admin"):
        logins.revoke("ci", ann.caller)
    with pytest.raises(Refused, match="needs the right to work"):
        logins.link("bob", bob.caller)
    token, _ = logins.log_in_laptop(logins.link("ann", ann.caller), "book") or ("", None)
    link = logins.link("ann", app.caller)
    app.close()

    listed = shell.did("web", "tokens")
    shell.did("people", "remove", "ann")
    app = shell.app()
    assert "ann@book" in listed
    assert "it is revoked" in listed
    assert web_logins_of(app).with_token(token) is None
    assert web_logins_of(app).log_in_laptop(link, "book") is None
    app.close()


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("http://build.example.org",), "could read the token"),
        (("https://build", "--fingerprint", "12"), "is no SHA-256 fingerprint"),
        (("https://build", "--ssh", "-oProxyCommand=x"), "is no name for ssh"),
        (("https://127.0.0.1:1/login?link=x",), "was not reached"),
        (("https://127.0.0.1:1",), "no code was given"),
    ],
)
def test_a_login_that_cannot_be_is_refused(shell: Shell, argv: tuple[str, ...], why: str) -> None:
    answer = shell.run("login", *argv)

    assert why in answer.why
    assert "nobody is logged in at a server" in shell.run("logout").why
