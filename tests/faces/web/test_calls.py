"""Commands of people on other machines: who may do what, and what is refused, each in words."""

import asyncio
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest
from msgspec.structs import replace

from lockgate.adapters.store.hosts import SqlHosts
from lockgate.bootstrap.outside import web_logins_of
from lockgate.core.hosts import Host
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.model.people import Right
from lockgate.core.model.task import Task
from lockgate.faces import client
from lockgate.faces.cli.app import run
from lockgate.faces.cli.serve import carry_out
from lockgate.faces.laptop import server as laptop
from lockgate.faces.laptop.call import forwarded, ssh_name
from lockgate.faces.web import calls, guard, serve
from lockgate.faces.web.serve import Listening
from lockgate.services.task.callers import HUMAN
from tests.adapters.test_forwarding import server as another_host
from tests.faces.web.home import a_home
from tests.faces.web.serving import Board, serving
from tests.faces.web.serving import _until as until

HEADERS = (("Lockgate-Protocol", "1"), ("Content-Type", "application/octet-stream"))


@dataclass
class Team:
    """A served home with three people, and the laptop that one of them is at."""

    board: Board
    place: Path
    patch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]
    tokens: dict[str, str] = field(default_factory=dict)

    def log_in(self, name: str) -> str:
        app = self.board.home.app
        word = web_logins_of(app).link(name, app.caller)
        self.patch.setattr(sys, "stdin", io.StringIO(f"{self.board.origin}/login?link={word}\n"))
        assert run(["login", self.board.origin]) == 0
        return self.capture.readouterr().out

    def says(self, *argv: str, **more: str) -> tuple[int | None, str, str]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in more.items():
                patch.setenv(name, value)
            code = forwarded(list(argv))
        told = self.capture.readouterr()
        return code, told.out, told.err

    def refused(self, *argv: str, **more: str) -> str:
        code, out, err = self.says(*argv, **more)
        assert (code, out) == (1, ""), err
        return err

    @property
    def token(self) -> str:
        return laptop.chosen().token

    def posts(self, body: bytes, *headers: tuple[str, str], path: str = "/people/call"):
        said = [("Host", self.board.served.host), ("Authorization", f"Bearer {self.token}")]
        found = {name.lower(): (name, value) for name, value in (*said, *HEADERS, *headers)}
        return self.board.ask("POST", path, list(found.values()), body.decode())

    def sent(self, *argv: str, where: str = "", stdin: bytes = b""):
        return self.posts(client.packed(("", where, ""), list(argv), stdin))


@pytest.fixture
def team(tmp_path: Path, monkeypatch, capfd) -> Iterator[Team]:
    monkeypatch.setenv("LOCKGATE_HOME", str(tmp_path / "laptop"))
    monkeypatch.setenv("LOCKGATE_NO_ORCHESTRATOR", "1")
    home = a_home(tmp_path / "server")
    for name, may in (("ann", Right.LAND), ("bob", Right.WORK), ("eve", Right.LOOK)):
        home.app.members.add(name, may, None, HUMAN)
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / ".git" / "config").write_text(
        f'[remote "origin"]\n\turl = {home.project("shop").root}\n'
    )
    monkeypatch.chdir(clone)
    with serving(home) as board:
        yield Team(board, tmp_path, monkeypatch, capfd)
    home.app.close()


def test_a_command_is_carried_out_by_the_name_and_right_of_who_logged_in(team: Team) -> None:
    waiting = team.board.home
    task = waiting.waiting(waiting.changed(waiting.started("a", "Go on"), {"a.txt": "x\n"}))
    team.log_in("bob")
    (team.place / "clone" / "more.md").write_text("Fix it\n\nSoon.\n")

    code, out, _ = team.says("task", "create", "fix-it", "--file", "more.md", "--json")
    made = json.loads(out)
    not_landed = team.refused("approve", task.id)
    team.log_in("ann")
    approved, shown, _ = team.says("approve", task.id)

    created = team.board.home.app.views.all_events(made["id"])[0]
    assert (code, made["summary"], created.data["by"]) == (0, "Fix it", "bob")
    assert "bob has the right to work, and this needs the right to land" in not_landed
    assert (approved, task.id in shown) == (0, True)
    assert [it.by for it in waiting.load(task.id).approvals] == ["ann"]
    until(lambda: len(team.board.woken) == 2)


ACTS = [
    ("task", "create", "b", "s"),
    ("task", "create", "--plan", "plan.toml"),
    *((it, "ID", "-m", "x") for it in ("approve", "reject", "comment", "answer")),
    *((it, "ID") for it in ("resume", "undo", "handback")),
    ("say", "ID", "x"),
    ("run", "--no-wait", "x"),
    *(("task", it, "ID") for it in ("start", "respawn", "repin", "cancel", "delete", "complete")),
    ("task", "peek", "ID"),
    ("task", "edit", "ID", "--file", "plan.toml"),
    ("task", "update", "ID", "--status", "working"),
    ("task", "drop-dependency", "ID", "x"),
    ("queue", "approve", "ID"),
    *(("queue", it, "ID", "-m", "x") for it in ("hold", "drop")),
    ("web", "login"),
    ("web", "login", "--person", "ann"),
    ("stats", "--rebuild"),
]


def test_who_may_only_look_changes_nothing(team: Team) -> None:
    task = team.board.home.started("a", "Go on")
    (team.place / "clone" / "plan.toml").write_text('[[tasks]]\nname = "a"\nsummary = "b"\n')
    team.log_in("eve")
    web_logins_of(team.board.home.app).reached_at(team.board.origin)
    before = team.board.home.app.store.head()

    for argv in ACTS:
        told = team.refused(*(task.id if it == "ID" else it for it in argv))
        assert "has the right to look" in told, (argv, told)

    assert team.board.home.app.store.head() == before
    assert task.id in team.says("task", "list")[1]
    assert "Go on" in team.says("task", "show", task.id)[1]
    assert team.says("status", "--json")[0] == team.says("inbox")[0] == 0


def test_no_file_of_the_server_is_read_and_none_is_its_agent(team: Team) -> None:
    team.board.home.task("first", "It is known by this task")
    team.log_in("bob")
    file = team.place / "clone" / "agent.sh"
    file.write_text("#!/bin/sh\n")
    where = urlencode({"origin": team.board.home.project("shop").root})
    plan = f'[[tasks]]\nname = "a"\nsummary = "b"\nagent = "{file}"\n'.encode()

    read = team.sent("task", "create", "b", "s", "--context", "/etc/passwd", where=where)
    agent = team.sent("task", "create", "b", "s", "--agent", str(file), where=where)
    planned = team.sent("task", "create", "--plan", "-", where=where, stdin=plan)
    events = team.sent("events", "--project", "/etc", where=where)

    assert "it is on another machine than the server" in read.text
    assert "files of your machine are not on the server" in agent.text
    assert "files of your machine are not on the server" in planned.text
    assert events.text.endswith("x0\0")


def test_what_is_not_for_people_elsewhere_is_refused_by_the_server_too(team: Team) -> None:
    team.log_in("ann")

    for argv in (("people", "list"), ("task", "import", "/etc"), ("up",), ("mcp",), ()):
        answer = team.sent(*argv)
        assert "is not done for people on other machines" in answer.text
        assert answer.text.endswith("x1\0")
    assert "No such command 'feed'" in team.sent("feed").text
    assert "the request was not understood" in team.posts(b"nonsense").text


def test_a_mistyped_command_is_a_usage_error_with_what_may_be_meant(team: Team) -> None:
    team.log_in("ann")

    for argv, meant in ((("statuss",), "status"), (("task", "lisst"), "list")):
        code, out, err = team.says(*argv)
        assert (code, out, f"Did you mean '{meant}'" in err) == (2, "", True)
    hidden = team.sent("--json", "people", "list")
    assert "is not done for people on other machines" in hidden.text


def test_help_needs_no_server(team: Team) -> None:
    laptop.remember(laptop.Login("https://127.0.0.1:9", "x"))

    assert forwarded(["run", "--help"]) is forwarded(["task", "list", "--help"]) is None
    assert "was not reached" in team.refused("run", "--", "--help")


def test_a_project_that_the_server_does_not_have_is_told(team: Team) -> None:
    team.log_in("bob")
    config = team.place / "clone" / ".git" / "config"
    config.write_text('[remote "origin"]\n\turl = https://github.com/acme/other\n')

    assert "the server has no project cloned from" in team.refused("run", "x")
    team.board.home.task("a", "Go on")
    assert team.says("task", "list", LOCKGATE_PROJECT="shop")[0] == 0


def test_a_repository_without_tasks_is_found_where_the_settings_name_it(team: Team) -> None:
    home = team.board.home.app.home
    root = team.board.home.project("shop").root
    team.log_in("bob")
    assert "the server has no project" in team.refused("run", "--no-wait", "x")

    (home / "settings.toml").write_text(f'[server]\nprojects = ["{root}", "{team.place}"]\n')

    assert team.says("task", "create", "b", "s")[0] == 0


# Who does not get in.


def test_a_token_that_is_wrong_expired_revoked_or_a_removed_person_s_is_refused(
    team: Team, monkeypatch
) -> None:
    app = team.board.home.app
    logins = web_logins_of(app)
    why = "it is wrong, has expired or was revoked"

    team.log_in("bob")
    [key] = [it for it in logins.tokens() if it.person == "bob"]
    logins.revoke(key.name, app.caller)
    assert why in team.refused("status")
    team.log_in("bob")
    app.members.remove("bob", app.caller)
    logins.forget("bob", app.caller)
    assert why in team.refused("status")
    with monkeypatch.context() as patch:
        patch.setattr("lockgate.services.task.web_logins.LAPTOP_SECONDS", 0.05)
        team.log_in("ann")
    time.sleep(0.06)
    assert why in team.refused("status")
    laptop.remember(laptop.chosen()._replace(token="x" * 40))
    assert why in team.refused("status")


def test_wrong_tokens_of_others_do_not_lock_out_who_has_a_good_one(team: Team) -> None:
    team.log_in("bob")
    tried = {team.posts(b"", ("Authorization", "Bearer x")).status for _ in range(12)}

    assert tried == {401, 429}
    assert team.says("status")[0] == 0


def test_a_word_works_once_and_a_laptop_has_one_token(team: Team) -> None:
    app = team.board.home.app
    word = web_logins_of(app).link("bob", app.caller)
    assert run(["login", f"{team.board.origin}/login?link={word}"]) == 0
    assert run(["login", f"{team.board.origin}/login?link={word}"]) == 1
    assert "wrong, used up, or too old" in team.capture.readouterr().err
    team.log_in("bob")

    assert [it.person for it in web_logins_of(app).tokens()] == ["bob"]
    assert run(["web", "tokens"], None) == 0


def test_a_code_is_read_from_stdin_where_the_address_has_none(team: Team, monkeypatch) -> None:
    app = team.board.home.app
    bare = team.board.origin.removeprefix("http://")
    told = {"token": "t", "person": "bob", "may": "work", "ssh": "", "name": "bob@mac"}
    asked = list[str]()

    @contextmanager
    def answered(at: laptop.Login, _path: str, body: bytes, _headers: object):
        asked.append(f"{at.url} {parse_qs(body.decode())['link'][0]}")
        yield io.BytesIO(json.dumps(told).encode())

    word = web_logins_of(app).link("bob", app.caller)
    monkeypatch.setattr(laptop, "asked", answered)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{word}\n"))

    assert run(["login", "build:8443"]) == 0
    assert run(["login", f"https://{bare}/login?link={word}"]) == 0
    assert asked == [f"https://build:8443 {word}", f"https://{bare} {word}"]


def test_an_address_that_is_none_is_told_in_plain_words(team: Team) -> None:
    for url in ("https://a..b", "https://a b.example", "https://[::1"):
        assert run(["login", url]) == 2
        told = team.capture.readouterr().err
        assert (url in told, "is no address of a server" in told) == (True, True)


def test_a_browser_s_login_and_a_session_s_token_are_no_laptop_s(team: Team) -> None:
    team.log_in("bob")
    body = client.packed(("", "", ""), ["status"], b"")
    browser = [*team.board.usual("POST"), HEADERS[0]]
    cookie = team.board.ask("POST", "/people/call", browser, body.decode())
    nobody = [("Host", team.board.served.host), ("Origin", team.board.origin), *HEADERS]

    assert cookie.status == 401
    assert team.board.ask("POST", "/people/call", nobody, "x").status == 401
    assert team.posts(b"", ("Authorization", "Bearer session")).status == 401


def test_a_foreign_host_another_protocol_and_a_huge_request_are_refused(team: Team) -> None:
    team.log_in("bob")

    assert team.posts(b"", ("Host", "evil.example")).status == 421
    older = team.posts(b"", ("Lockgate-Protocol", "0"))
    assert (older.status, "protocol 1, not '0'" in older.text) == (426, True)
    assert team.posts(b"", ("Content-Length", "2000000")).status == 413
    port = team.board.port
    laptop.remember(laptop.chosen()._replace(url=f"http://127.0.0.1:{port}"))
    assert "it is reached by another address" in team.refused("status")


def connected(team: Team) -> socket.socket:
    return socket.create_connection(("127.0.0.1", team.board.port), timeout=20)


def test_a_request_that_does_not_come_whole_is_ended(team: Team, monkeypatch) -> None:
    team.log_in("bob")
    monkeypatch.setattr(guard, "ARRIVES", 0.2)
    monkeypatch.setattr(serve, "HEAD_ARRIVES", 0.2)
    said = f"Host: {team.board.served.host}\r\nAuthorization: Bearer {team.token}\r\n"

    with connected(team) as slow:
        slow.sendall(b"POST /people/call HTTP/1.1\r\nHost: ")
        assert slow.recv(100) == b""
    with connected(team) as slow:
        head = f"POST /people/call HTTP/1.1\r\n{said}Lockgate-Protocol: 1\r\nContent-Length: 9\r\n"
        slow.sendall(f"{head}\r\nab".encode())
        assert b"413" in slow.recv(100)


def test_a_connection_that_sends_empty_lines_after_an_answer_is_ended(
    team: Team, monkeypatch
) -> None:
    monkeypatch.setattr(serve, "HEAD_ARRIVES", 0.2)

    with connected(team) as idle:
        idle.sendall(f"GET /none HTTP/1.1\r\nHost: {team.board.served.host}\r\n\r\n".encode())
        heard = b""
        while b"</html>" not in heard:
            heard += idle.recv(1 << 16)
        idle.sendall(b"\r\n")
        assert idle.recv(100) == b""


def test_a_login_needs_no_certificate_that_can_be_read(team: Team) -> None:
    settings = team.board.home.app.home / "settings.toml"
    settings.write_text('[server]\ncertificate = "/none"\nkey = "/none"\nssh = "lg@team.test"\n')

    team.log_in("bob")

    assert (laptop.chosen().person, laptop.chosen().ssh) == ("bob", "lg@team.test")


def test_settings_that_cannot_be_read_use_no_login_link_up(team: Team) -> None:
    app = team.board.home.app
    settings = app.home / "settings.toml"
    word = web_logins_of(app).link("bob", app.caller)
    settings.write_text("[server")
    assert run(["login", f"{team.board.origin}/login?link={word}"]) == 1
    assert "settings.toml" in team.capture.readouterr().err
    settings.unlink()
    assert run(["login", f"{team.board.origin}/login?link={word}"]) == 0


def test_one_person_has_so_many_commands_at_once(team: Team, monkeypatch) -> None:
    team.log_in("bob")
    monkeypatch.setattr(calls, "OF_ONE", 0)

    assert "too many commands run already" in team.refused("status")


class Gone:
    """Somebody who asked, and has left since."""

    code: int | None = None

    def out(self, text: str) -> None: ...
    def err(self, text: str) -> None: ...
    def take(self):
        raise BrokenPipeError

    def end(self, code: int) -> None:
        self.code = code

    def gone(self) -> bool:
        return True


def test_what_tells_as_it_happens_ends_when_nobody_listens(team: Team, monkeypatch) -> None:
    told = iter([{"beat": 1}] * 2)
    monkeypatch.setattr("lockgate.faces.feed_client.follow", lambda **_: told)
    line = Gone()

    news = carry_out(
        team.board.home.app, client.packed(("", "", ""), ["events", "--follow"], b""), line
    )

    assert (news, line.code) == (False, 130)
    assert len(list(told)) == 1


def test_who_does_not_read_their_answer_holds_up_nobody(monkeypatch) -> None:
    monkeypatch.setattr(calls, "READS", 0.05)
    monkeypatch.setattr(calls, "BEHIND", 1)

    async def slow() -> bool:
        line = calls.Line(asyncio.get_running_loop())
        for _ in range(3):
            await asyncio.to_thread(line.out, "x")
        return line.gone()

    assert asyncio.run(slow())


def test_a_reader_that_was_too_slow_gets_an_end_without_an_exit_code(monkeypatch) -> None:
    monkeypatch.setattr(calls, "READS", 0.05)
    monkeypatch.setattr(calls, "BEHIND", 1)
    monkeypatch.setattr(calls, "BEAT", 0.05)

    async def late() -> list[bytes]:
        line = calls.Line(asyncio.get_running_loop())
        parts = line.parts()
        await anext(parts)
        for _ in range(3):
            await asyncio.to_thread(line.out, "x")
        await asyncio.to_thread(line.end, 0)
        await asyncio.to_thread(line.close)
        return [it async for it in parts]

    async def heard() -> list[bytes]:
        return await asyncio.wait_for(late(), 10)

    told = asyncio.run(heard())
    assert told[0] == b"ox\0"
    assert b"x0\0" not in told


def test_an_answer_that_takes_long_says_that_it_goes_on(monkeypatch) -> None:
    monkeypatch.setattr(calls, "BEAT", 0.01)

    async def heard() -> list[bytes]:
        line = calls.Line(asyncio.get_running_loop())
        parts = line.parts()
        first = [await anext(parts), await anext(parts)]
        await asyncio.to_thread(line.end, 0)
        await asyncio.to_thread(line.close)
        return [*first, *[it async for it in parts]]

    assert asyncio.run(heard())[-3:] in ([b"o\0", b"o\0", b"x0\0"], [b"o\0", b"x0\0"])


# What the laptop says where the server cannot be used.


def test_a_server_that_is_down_or_says_nothing_is_told(team: Team, monkeypatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        laptop.remember(laptop.Login(url, "x"))
        monkeypatch.setattr(laptop, "ANSWERS", 0.2)
        told = team.refused("status")
        assert "it is not known whether the command was carried out" in told
        assert ("does not answer" in told, "look: lockgate status" in told) == (True, True)
    assert "nothing was done" in team.refused("status")
    assert "was not reached: Connection refused" in team.refused("status")
    assert json.loads(team.says("status", "--json")[1])["error"]["fix"]


def test_an_answer_that_breaks_off_is_told(team: Team) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broken:

        def answer(text: bytes) -> None:
            connection, _ = broken.accept()
            heard = b""
            with connection:
                while not heard.endswith(b"status"):  # what is not read would reset it
                    heard += connection.recv(1 << 16)
                connection.sendall(text)

        laptop.remember(laptop.Login(f"http://127.0.0.1:{broken.getsockname()[1]}", "x"))
        for text, why in (
            (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\no\0ohello\0", "before it had answered"),
            (b"HTTP/1.1 404 No\r\nConnection: close\r\n\r\nno", "it is no Lockgate server"),
            (b"HTTP/1.1 418 No\r\nConnection: close\r\n\r\ntea", "it said 418: tea"),
            (b"nonsense\r\n\r\n", "it is not known whether the command was carried out"),
            (b"", "it is not known whether the command was carried out"),
        ):
            thread = threading.Thread(target=answer, args=(text,))
            thread.start()
            assert why in team.says("status")[2]
            thread.join()


def test_a_command_ends_when_the_reader_of_its_output_has_gone(team: Team, monkeypatch) -> None:
    monkeypatch.setattr(laptop, "SILENT", 5.0)
    with socket.create_server(("127.0.0.1", 0)) as endless:

        def answer() -> None:
            connection, _ = endless.accept()
            with connection:
                while not connection.recv(1 << 16).endswith(b"--follow"):
                    pass
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\no\0ohello\0")
                connection.recv(1)  # until the laptop closes it

        thread = threading.Thread(target=answer)
        thread.start()
        laptop.remember(laptop.Login(f"http://127.0.0.1:{endless.getsockname()[1]}", "x"))
        before = os.dup(1)
        there, ours = os.pipe()
        os.close(there)
        os.dup2(ours, 1)
        try:
            code = forwarded(["events", "--follow"])
        finally:
            os.dup2(before, 1)
            os.close(before)
            os.close(ours)
        thread.join()

    assert code == 0


def test_a_laptop_goes_by_the_login_that_is_named(team: Team) -> None:
    team.log_in("bob")
    first = laptop.chosen()
    laptop.remember(laptop.Login("https://other.example", "x"))

    assert team.says("status", LOCKGATE_SERVER=first.url)[0] == 0
    assert "there is no login at https://none" in team.refused(
        "status", LOCKGATE_SERVER="https://none"
    )
    laptop.forget(laptop.chosen())
    assert laptop.chosen() == first
    assert (run(["logout"]), client.is_elsewhere()) == (0, False)
    assert "logged out" in team.capture.readouterr().out
    assert web_logins_of(team.board.home.app).tokens() == ()
    Path(client.login_file()).write_text("no json")
    assert "login.json was not read" in team.refused("status")


def test_what_is_about_a_machine_is_not_sent(team: Team) -> None:
    laptop.remember(laptop.Login("https://127.0.0.1:9", "x", ssh="build.example.org"))

    assert forwarded(["gate", "run"]) is forwarded(["mcp", "--print", "x"]) is None
    assert forwarded(["web"]) is forwarded(["takeover", "--help"]) is None
    seated = team.refused("takeover", "it's")
    assert "ssh -t build.example.org lockgate" in seated
    assert "which machine it is on was not asked" in seated
    assert ssh_name(laptop.Login("https://build:8443")) == "build"
    assert "ssh build.example.org lockgate people list" in team.refused("people", "list")
    laptop.remember(laptop.chosen()._replace(ssh="-oProxyCommand=x"))
    assert "is no name for ssh" in team.refused("tui")


def certified(place: Path) -> tuple[Listening, str]:
    """A server with a certificate of its own making, and the fingerprint of that."""
    made = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    named = ("-subj", "/CN=team", "-days", "2", "-keyout", "key", "-out", "cert")
    subprocess.run(("openssl", *made, *named), cwd=place, check=True, capture_output=True)
    asked = ("openssl", "x509", "-in", "cert", "-noout", "-fingerprint", "-sha256")
    shown = subprocess.check_output(asked, cwd=place, text=True)
    at = Listening(port=0, certificate=str(place / "cert"), key=str(place / "key"))
    return at, shown


def test_a_renewed_certificate_is_named_without_a_new_code(team: Team) -> None:
    app = team.board.home.app
    at, shown = certified(team.place)

    def logs_in(url: str, pin: str, said: str = "\n") -> tuple[int, str]:
        team.patch.setattr(sys, "stdin", io.StringIO(said))
        return run(["login", url, "--fingerprint", pin]), team.capture.readouterr().err

    with serving(team.board.home, at) as board:
        link = web_logins_of(app).link("bob", app.caller)
        assert logs_in(board.origin, shown, link)[0] == 0
        good = laptop.chosen()
        laptop.remember(good._replace(fingerprint="0" * 64, ssh="lg@team.test"))
        assert logs_in(board.origin, "1" * 64)[0] == 1
        assert "no code was given" in logs_in(board.origin, shown, "no/code\n")[1]
        assert laptop.chosen().fingerprint == "0" * 64
        assert logs_in(board.origin, shown)[0] == 0
        assert laptop.chosen() == good._replace(ssh="lg@team.test")
        laptop.remember(good._replace(token="x" * 40))
        code, told = logs_in(board.origin, shown)
        assert (code, "the token is not known here" in told) == (1, True)
        laptop.forget(laptop.chosen())
        code, told = logs_in(board.origin, shown)
        assert (code, "no code was given" in told) == (1, True)


def test_a_certificate_is_the_one_that_is_named_or_one_that_the_system_knows(
    tmp_path: Path, monkeypatch, capfd
) -> None:
    monkeypatch.setenv("LOCKGATE_HOME", str(tmp_path / "laptop"))
    at, shown = certified(tmp_path)
    home = a_home(tmp_path / "server")

    with serving(home, at) as board:
        good = laptop.Login(board.origin, "x", fingerprint=laptop.fingerprint(shown))
        for login, why in (
            (good, "the token is not known here"),
            (good._replace(fingerprint="0" * 64), "another certificate than the one"),
            (good._replace(fingerprint=""), "is not good: self-signed certificate"),
            (good._replace(url=f"http://127.0.0.1:{board.port}"), "broke its answer off"),
        ):
            laptop.remember(login)
            assert forwarded(["status"]) == 1
            assert why in capfd.readouterr().err
    home.app.close()


def test_an_assistant_on_a_laptop_reaches_the_server_s_tools(
    team: Team, tmp_path, monkeypatch
) -> None:
    task = team.board.home.started("a", "Go on")
    team.log_in("bob")

    def call(id: int, **asked: str) -> dict[str, object]:
        params = {"name": "create_task", "arguments": asked}
        return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}

    who = {"protocolVersion": "2025-11-25", "capabilities": {}}
    who |= {"clientInfo": {"name": "it", "version": "1"}}
    said = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_tasks"}},
        call(3, branch="b", summary="Do b"),
        call(4, branch="c", summary="Do c", project=str(tmp_path / "server" / "home")),
        call(5, branch="d", summary="Do d", project="shop"),
    ]
    lines = b"".join(json.dumps(it).encode() + b"\n" for it in said) + b"nonsense\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))

    code, out, _ = team.says("mcp")

    heard = [json.loads(line) for line in out.splitlines()]
    found = {it["id"]: it for it in heard}
    assert code == 0
    assert found[1]["result"]["protocolVersion"] == "2025-11-25"
    assert found[2]["result"]["structuredContent"]["rows"][0]["id"] == task.id
    assert [bool(found[it]["result"].get("isError")) for it in (3, 4, 5)] == [False, True, False]
    assert found[None]["error"]["code"] == -32700
    laptop.remember(laptop.chosen()._replace(token="x" * 9))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    _, out, _ = team.says("mcp")
    last = {it["id"]: it for it in map(json.loads, out.splitlines())}
    assert last[2]["result"]["isError"]


# Among several hosts.


def at_host(team: Team, *, api: str = "", ssh: str = "") -> Task:
    """A task whose clone is on another host."""
    home = team.board.home
    SqlHosts(home.app.store.database).put(Host(name="h2", boot="b2", api=api, ssh=ssh))
    task = home.spoke(home.started("a", "Go on"), "I am here.\n")
    return home.put(task, task.status, host="h2")


def test_a_command_that_needs_another_host_s_files_is_answered_by_that_one_once(
    team: Team,
) -> None:
    heard = list[tuple[str, str, bytes]]()
    with another_host(200, heard) as url:
        task = at_host(team, api=url)
        team.log_in("bob")
        peeked = team.says("task", "peek", task.id)
        shown = team.says("task", "show", task.id)
        body = client.packed(("", "", ""), ["task", "peek", task.id], b"")
        here = team.posts(body, ("Lockgate-Forwarded", "1"))

    assert peeked[:2] == (0, "said")
    assert [it[0] for it in heard] == [f"Bearer {team.token}"]
    assert "Go on" in shown[1]
    assert "I am here." in here.text
    assert "was not reached" in team.says("handback", task.id)[2]


def test_other_hosts_send_commands_to_the_address_that_the_host_tells_them(team: Team) -> None:
    app = team.board.home.app
    made = web_logins_of(app).token("ann", "ci", app.caller, read_only=False)
    token = ("Authorization", f"Bearer {made}")
    body = client.packed(("", "", ""), ["status"], b"").decode()

    def said(board: Board, path: str, *headers: tuple[str, str], method: str = "POST") -> int:
        return board.ask(method, path, [*headers, *HEADERS], body).status

    with serving(team.board.home, Listening(port=0, api="https://h2.lan:8443")) as board:
        known = ("Host", "h2.lan:8443")
        assert said(board, "/people/call", known, token) == 200
        assert said(board, "/people/call", known, ("Authorization", "Bearer x")) == 401
        assert said(board, "/people/call", known, ("Authorization", "Basic x")) == 421
        assert said(board, "/people/call", known, ("Origin", "https://h2.lan:8443")) == 421
        assert said(board, "/people/call", ("Host", "h2.lan"), token) == 421
        assert said(board, "/people/seat", known, token) == 421
        assert said(board, "/login/laptop", known) == 421
        page = board.ask("GET", "/t/x/output", [known])
        assert (page.status, page.headers["location"]) == (307, f"{board.origin}/t/x/output")


def test_a_board_says_on_which_host_an_agent_s_output_is(team: Team) -> None:
    task = at_host(team, api="https://h2.test")
    store = team.board.home.app.store
    [session] = store.sessions(task.id)
    (team.board.home.app.home / "sessions" / session.id / "stdout.log").unlink()
    later = replace(store.load(task.id), rev=store.load(task.id).rev + 1)
    store.commit(Decision(later, session=replace(session, host="h2")))
    team.board.log_in()

    page = team.board.get(f"/t/{task.id}/output")

    assert page.status == 422
    assert f"https://h2.test/t/{task.id}/output/{session.id}" in page.text


@pytest.fixture
def two(team: Team) -> Iterator[tuple[str, str]]:
    """Where two hosts of a fleet are reached: their people and tokens are the same."""
    with serving(team.board.home) as other:
        yield team.board.origin, other.origin


def test_a_login_is_good_at_another_host_of_the_fleet_where_a_person_says_so(
    team: Team, two: tuple[str, str]
) -> None:
    first, second = two
    team.log_in("bob")
    settings = team.board.home.app.home / "settings.toml"
    settings.write_text('[server]\nssh = "lg@h2.test"\n')
    [before] = web_logins_of(team.board.home.app).tokens()

    told = team.refused("status", LOCKGATE_SERVER=second)
    assert f"lockgate login {second}, with --same-as {first} where both are hosts of one" in told
    assert run(["login", second, "--same-as", f"{first}/"]) == 0
    assert f"you are bob at {second}" in team.capture.readouterr().out
    assert laptop.chosen()[:3] == (second, laptop.chosen({"LOCKGATE_SERVER": first}).token, "bob")
    assert laptop.chosen().ssh == "lg@h2.test"
    for url in (first, second, f"{second.upper()}/"):
        assert team.says("status", LOCKGATE_SERVER=url)[0] == 0
    assert web_logins_of(team.board.home.app).tokens() == (before,)


def test_a_new_login_is_that_of_all_hosts_that_had_the_old_one(
    team: Team, two: tuple[str, str]
) -> None:
    first, second = two
    team.log_in("bob")
    old = team.token
    laptop.remember(laptop.Login("https://other.example", "other"))
    assert run(["login", second, "--same-as", first]) == 0
    team.log_in("bob")

    said = json.loads(Path(client.login_file()).read_text())["servers"]

    assert team.token != old
    assert {url: it["token"] for url, it in said.items()} == {
        first: team.token,
        second: team.token,
        "https://other.example": "other",
    }
    assert team.says("status", LOCKGATE_SERVER=second)[0] == 0


def test_a_login_that_is_taken_over_replaces_none_but_that_of_its_host(
    team: Team, two: tuple[str, str]
) -> None:
    first, second = two
    team.log_in("bob")
    for url in (second, "https://other.example"):
        laptop.remember(laptop.Login(url, "same"))

    assert run(["login", second, "--same-as", first]) == 0

    said = json.loads(Path(client.login_file()).read_text())["servers"]
    assert said["https://other.example"]["token"] == "same"
    assert said[second]["token"] == said[first]["token"]


def test_a_logout_ends_a_login_at_all_hosts_that_have_it(team: Team, two: tuple[str, str]) -> None:
    first, second = two
    laptop.remember(laptop.Login("https://other.example", "other"))
    team.log_in("bob")
    assert run(["login", second, "--same-as", first]) == 0
    team.capture.readouterr()

    assert run(["logout"]) == 0

    assert f"logged out at {second} and {first}" in team.capture.readouterr().out
    assert laptop.chosen().url == "https://other.example"
    assert web_logins_of(team.board.home.app).tokens() == ()


def test_a_login_that_another_server_does_not_know_is_not_kept_for_it(
    team: Team, two: tuple[str, str]
) -> None:
    first, second = two
    team.log_in("bob")
    laptop.remember(laptop.chosen()._replace(token="x" * 40))

    for url in (second, "http://127.0.0.1:9"):
        assert run(["login", url, "--same-as", first]) == 1
    told = team.capture.readouterr().err
    assert run(["login", second, "--same-as", "https://none"]) == 1

    assert ("the token is not known here" in told, "was not reached" in told) == (True, True)
    assert "there is no login at https://none" in team.capture.readouterr().err
    assert laptop.chosen().url == first
    assert second not in Path(client.login_file()).read_text()


def test_a_link_and_another_login_are_not_named_at_once(team: Team) -> None:
    assert run(["login", "https://build/login?link=x", "--same-as", "https://build"]) == 2
    assert "a link and --same-as" in team.capture.readouterr().err


def test_a_board_says_on_which_host_a_change_is_that_was_not_handed_in(team: Team) -> None:
    task = at_host(team, api="https://h2.test")
    team.board.log_in()

    page = team.board.get(f"/t/{task.id}/review")

    assert page.status == 422
    assert "are on host h2" in page.text
    assert f"https://h2.test/t/{task.id}/review" in page.text


def test_a_host_that_has_the_files_and_serves_nobody_is_named(team: Team) -> None:
    task = at_host(team)
    team.log_in("bob")

    assert "host h2 has the task's files, and serves nobody" in team.refused("diff", task.id)
    code, out, _ = team.says("diff", task.id, "--json")
    assert (code, "serves nobody" in json.loads(out)["error"]["why"]) == (1, True)


def test_a_terminal_goes_to_the_host_that_has_the_session(team: Team) -> None:
    task = at_host(team, ssh="lockgate@h2.test")
    team.log_in("bob")

    told = team.refused("task", "attach", task.id)
    assert f"ssh -t lockgate@h2.test lockgate task attach {task.id}" in told
    assert "ssh -t lg-" in team.refused("tui")
    assert team.posts(b"no", path="/people/seat").facts == {"ssh": "", "own": ""}
    stranger = ("Authorization", "Bearer x")
    assert team.posts(b"", stranger, path="/people/seat").status == 401


def test_an_assistant_in_a_clone_that_is_unknown_is_told_so_where_a_project_is_needed(
    team: Team, monkeypatch
) -> None:
    team.board.home.started("a", "Go on")
    config = team.place / "clone" / ".git" / "config"
    config.write_text('[remote "origin"]\n\turl = https://github.com/acme/other\n')
    team.log_in("bob")
    who = {"protocolVersion": "2025-11-25", "capabilities": {}}
    who |= {"clientInfo": {"name": "it", "version": "1"}}
    made = {"name": "create_task", "arguments": {"branch": "b", "summary": "Do b"}}
    said = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": who},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_tasks"}},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": made},
    ]
    lines = b"".join(json.dumps(it).encode() + b"\n" for it in said)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))

    found = {it["id"]: it for it in map(json.loads, team.says("mcp")[1].splitlines())}

    assert not found[2]["result"].get("isError")
    assert "the server has no project cloned from" in json.dumps(found[3])
