"""The short way of the hot commands: the client, the door it knocks at, and what it loads."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from lockgate.adapters.sessions.runner import command_socket as doors
from lockgate.adapters.sessions.runner.command_socket import (
    LONGEST,
    MOST_BYTES,
    MOST_WAITING,
    Answer,
    Door,
    Line,
    Request,
    ask,
    counted,
    packed_request,
    parsed_answer,
    parsed_request,
)
from lockgate.faces import client as hot

pytestmark = pytest.mark.measured

Answering = Callable[[Request, Line], Answer | None]
HOT = Path(hot.__file__)
# Coverage begins in site-packages, and counts modules by name, not by path.
MEASURED = "COVERAGE_PROCESS_CONFIG" in os.environ
PROGRAM = ("-m", "lockgate.faces.client") if MEASURED else ("-I", "-S", str(HOT))
OS = {"os", "os.path", "posix", "posixpath", "genericpath", "stat", "_stat", "_collections_abc"}
LIGHT = OS | {"sys", "_socket", "select"}


@pytest.fixture
def opened() -> Generator[Callable[..., Door]]:
    made = list[Door]()

    def open_door(
        path: Path, answer: Callable[[Request, Line], Answer | None], **more: int
    ) -> Door:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.append(Door(str(path), answer, **more))
        made[-1].serve()
        return made[-1]

    yield open_door
    for door in made:
        door.close()


def client(*argv: str, program: tuple[str, ...] = PROGRAM, **more: str):
    """The client as a process; `stdin` is given to it as text."""
    stdin = more.pop("stdin", "")
    return subprocess.run(
        [sys.executable, *program, *argv],
        input=stdin,
        env=os.environ | more,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def echo(request: Request, _line: Line) -> Answer:
    return Answer(4, f"{request.token}|{request.cwd}|{request.stdin}|{request.argv}\n", "warned\n")


# --- the client ---------------------------------------------------------------------------------


def test_it_sends_what_was_typed_and_prints_what_comes_back(home, opened) -> None:
    opened(home / "door.sock", echo)

    done = client("task", "update", "--summary", "two words ä", LOCKGATE_TOKEN="the-token")  # noqa: S106

    argv = ("task", "update", "--summary", "two words ä")
    assert done.stdout == f"the-token|{Path.cwd()}||{argv}\n"
    assert (done.stderr, done.returncode) == ("warned\n", 4)


def test_it_loads_nothing_that_takes_time(home, opened) -> None:
    opened(home / "door.sock", echo)
    script = (
        f"import sys; before = set(sys.modules); text = open({str(HOT)!r}).read(); "
        "exec(text, it := {'__name__': 'hot'}); it['call'](['checkpoint']); "
        "print(*set(sys.modules) - before)"
    )

    done = client(program=("-I", "-S", "-c", script), stdin="{}")

    loaded = done.stdout.splitlines()[-1].split()
    assert done.returncode == 0, done.stderr
    assert set(loaded) <= LIGHT


def test_the_hot_way_of_the_whole_command_loads_no_click(home, opened) -> None:
    opened(home / "door.sock", echo)

    done = client("task", "complete", program=("-X", "importtime", "-m", "lockgate"))

    assert done.returncode == 4
    assert " lockgate.faces.client\n" in done.stderr
    assert " click\n" not in done.stderr


def test_without_an_orchestrator_the_whole_program_does_it(home) -> None:
    done = client("task", "complete", "nothing", program=("-m", "lockgate"))

    assert done.returncode == 1
    assert "nothing" in done.stderr


@pytest.mark.parametrize("argv", [("--version",), ("task", "update", "--help")])
def test_other_commands_and_help_do_not_knock(home, opened, argv) -> None:
    heard = list[tuple[str, ...]]()

    def listen(request: Request, _line: Line) -> Answer:
        heard.append(request.argv)
        return Answer(0)

    opened(home / "door.sock", listen)

    done = client(*argv, program=("-m", "lockgate"))

    assert done.stdout
    assert argv not in heard


def test_the_runners_own_command_does_not_knock(home, opened) -> None:
    opened(home / "door.sock", echo)

    done = client("task", "complete", program=("-m", "lockgate"), LOCKGATE_NO_ORCHESTRATOR="1")

    assert done.stderr != "warned\n"


def test_where_a_sessions_socket_is_named_nothing_else_is_asked(tmp_path, opened) -> None:
    opened(tmp_path / "socket", echo)

    done = client(
        "task", "list", program=("-m", "lockgate"), LOCKGATE_SOCKET=str(tmp_path / "socket")
    )

    assert "('task', 'list')" in done.stdout


@pytest.mark.parametrize("stale", [False, True])
def test_a_sessions_socket_without_a_runner_is_an_error(tmp_path, stale) -> None:
    path = tmp_path / "socket"
    if stale:
        with socket.socket(socket.AF_UNIX) as left_behind:
            left_behind.bind(str(path))

    done = client("task", "complete", LOCKGATE_SOCKET=str(path))

    assert done.returncode == 1
    assert done.stderr.startswith(f"lockgate: nothing was done: {path}: ")


def test_a_stale_socket_of_the_orchestrator_is_no_orchestrator(home) -> None:
    home.mkdir()
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(home / "door.sock"))

    assert hot.call(["task", "complete"]) is None


def test_an_orchestrator_that_dies_before_it_answers_is_none(home) -> None:
    home.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home / "door.sock"))
        server.listen()
        dying = threading.Thread(target=accept_and_close, args=(server,))
        dying.start()

        assert hot.call(["task", "complete"]) is None
        dying.join()


def test_an_orchestrator_that_dies_within_its_answer_has_not_answered(home, opened) -> None:
    def dies(_request: Request, line: Line) -> None:
        line.out("the first words\n")

    opened(home / "door.sock", dies)

    done = client("gate", "run")

    assert (done.returncode, done.stdout) == (1, "the first words\n")
    assert done.stderr == "lockgate: nothing was done: the connection ended before an answer came\n"


def test_words_are_printed_as_they_come_each_where_it_belongs(home, opened) -> None:
    def speaks(request: Request, line: Line) -> Answer:
        for number in range(1000):
            (line.err if number % 2 else line.out)(f"{number} ä\0\n")
        return Answer(7, f"{request.lively} {request.path}\n")

    opened(home / "door.sock", speaks)

    done = client("gate", "run")

    assert (
        done.stdout
        == "".join(f"{it} ä\n" for it in range(0, 1000, 2)) + f"False {os.environ['PATH']}\n"
    )
    assert done.stderr == "".join(f"{it} ä\n" for it in range(1, 1000, 2))
    assert done.returncode == 7


def accept_and_close(server: socket.socket) -> None:
    connection, _ = server.accept()
    connection.close()


def test_the_default_home_is_the_one_of_the_whole_program(monkeypatch, tmp_path) -> None:
    from lockgate.bootstrap import home_of  # noqa: PLC0415 - it is heavy

    for names in (
        {"LOCKGATE_HOME": "relative"},
        {"LOCKGATE_HOME": "", "XDG_STATE_HOME": str(tmp_path / "xdg")},
        {"LOCKGATE_HOME": "", "XDG_STATE_HOME": ""},
    ):
        for name, value in names.items():
            monkeypatch.setenv(name, value)
        assert hot.home() == str(home_of(os.environ))


def test_a_path_may_be_longer_than_a_sockets_address(tmp_path, opened) -> None:
    home = tmp_path / ("a" * 100) / ("b" * 100)
    opened(home / "door.sock", echo)

    assert client("status", LOCKGATE_HOME=str(home)).returncode == 4
    assert ask(str(home / "door.sock"), asking("x"), patience=5).code == 4  # type: ignore[union-attr]  # None fails


# --- its input ----------------------------------------------------------------------------------


def test_a_hooks_input_is_sent_whole(home, opened) -> None:
    opened(home / "door.sock", lambda it, _: Answer(0, str(len(it.stdin))))

    assert client("checkpoint", stdin="x" * 1_000_000).stdout == "1000000"


def test_too_much_input_is_refused(tmp_path, opened) -> None:
    opened(tmp_path / "socket", echo)

    done = client("checkpoint", stdin="x" * 1_100_000, LOCKGATE_SOCKET=str(tmp_path / "socket"))

    assert done.returncode == 1
    assert "more than 1 MB" in done.stderr


def test_an_open_pipe_that_says_nothing_does_not_hold_it_up(home, opened) -> None:
    opened(home / "door.sock", echo)
    idle, held = os.pipe()
    begin = time.monotonic()

    done = subprocess.run(
        [sys.executable, "-I", "-S", str(HOT), "checkpoint"], stdin=idle, check=False, timeout=30
    )

    assert done.returncode == 4
    assert time.monotonic() - begin < 10
    os.close(idle)
    os.close(held)


@pytest.mark.parametrize("joined", [False, True], ids=["--file F", "--file=F"])
@pytest.mark.parametrize("name", ["findings.json", "-"])
def test_a_review_is_sent_with_its_text(tmp_path, opened, name, joined) -> None:
    opened(tmp_path / "socket", echo)
    (tmp_path / "findings.json").write_text("findings")
    file = name if name == "-" else str(tmp_path / name)

    done = client(
        "review",
        "submit",
        *([f"--file={file}"] if joined else ["--file", file]),
        stdin="findings",
        LOCKGATE_SOCKET=str(tmp_path / "socket"),
    )

    sent = "'--file=-'" if joined else "'--file', '-'"
    assert done.stdout.endswith(f"|findings|('review', 'submit', {sent})\n")


def test_a_review_that_is_not_there_is_told(tmp_path, opened) -> None:
    opened(tmp_path / "socket", echo)

    done = client("review", "submit", "--file", "missing", LOCKGATE_SOCKET=str(tmp_path / "socket"))

    assert done.returncode == 1
    assert "missing: No such file" in done.stderr


def test_other_commands_read_no_input(home, opened) -> None:
    opened(home / "door.sock", lambda it, _: Answer(0, it.stdin))

    assert client("task", "complete", stdin="not for you").stdout == ""


# --- the door -----------------------------------------------------------------------------------


def asking(*argv: str, stdin: str = "") -> Request:
    return Request(token="", cwd="/", stdin=stdin, argv=argv)


def test_a_door_is_for_its_owner_and_takes_the_place_of_one_left_behind(tmp_path, opened) -> None:
    path = tmp_path / "door.sock"
    Door(str(path), echo)._socket.close()

    opened(path, lambda _, __: Answer(0, "the second"))

    assert path.stat().st_mode & 0o777 == 0o600
    assert ask(str(path), asking("x"), patience=5).out == "the second"  # type: ignore[union-attr]  # None fails


def test_a_closed_door_is_gone(tmp_path, opened) -> None:
    path = tmp_path / "door.sock"
    door = opened(path, echo)

    assert door.close()

    assert not path.exists()
    assert ask(str(path), asking("x"), patience=5) is None


def test_so_many_are_answered_at_once_and_the_rest_wait(tmp_path, opened) -> None:
    now, most, lock = [0], [0], threading.Lock()

    def slow(_request: Request, _line: Line) -> Answer:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.1)
        with lock:
            now[0] -= 1
        return Answer(0)

    path = tmp_path / "door.sock"
    opened(path, slow, at_once=3)
    answers = list[Answer | None]()
    askers = [
        threading.Thread(target=lambda: answers.append(ask(str(path), asking("x"), patience=20)))
        for _ in range(10)
    ]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()

    assert [it.code for it in answers if it] == [0] * 10
    assert most[0] == 3


def test_closing_waits_for_what_was_taken(tmp_path, opened) -> None:
    taken = threading.Event()

    def slow(_request: Request, _line: Line) -> Answer:
        taken.set()
        time.sleep(0.4)
        return Answer(0, "done")

    path = tmp_path / "door.sock"
    door = opened(path, slow)
    answers = list[Answer | None]()
    asker = threading.Thread(target=lambda: answers.append(ask(str(path), asking("x"), patience=9)))
    asker.start()
    taken.wait(5)

    assert door.busy
    assert not door.close(patience=0.05)
    assert door.close(patience=5)

    asker.join()
    assert [it.out for it in answers if it] == ["done"]


@pytest.mark.parametrize("raw", [b"", b"2", b"1\0t\0/\0\0\0\0task", b"2\0t\0/\0\0", b"\xff\xfe"])
def test_what_is_no_request_is_answered_all_the_same(tmp_path, opened, raw) -> None:
    opened(tmp_path / "door.sock", echo)

    assert knock(tmp_path / "door.sock", raw).err.startswith("lockgate: the request was not")


def test_a_request_that_is_too_long_is_not_read_to_its_end(tmp_path, opened) -> None:
    opened(tmp_path / "door.sock", echo)

    assert "too long" in knock(tmp_path / "door.sock", b"x" * (5 << 20)).err


def knock(path: Path, raw: bytes) -> Answer:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(path))
        try:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
        except BrokenPipeError:
            pass
        answer = parsed_answer(b"".join(iter(lambda: connection.recv(1 << 16), b"")))
    assert answer is not None
    return answer


def test_whoever_answers_is_told_when_nobody_listens_any_more(tmp_path, opened) -> None:
    seen = list[bool]()
    left = threading.Event()

    def looks(_request: Request, line: Line) -> Answer:
        seen.append(line.gone())
        left.wait(5)
        seen.append(line.gone())
        line.out("to nobody\n")
        return Answer(0)

    door = opened(tmp_path / "door.sock", looks)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(tmp_path / "door.sock"))
        connection.sendall(packed_request(asking("x")))
        connection.shutdown(socket.SHUT_WR)
        while not seen:
            time.sleep(0.01)
    left.set()
    assert door.close()

    assert seen == [False, True]


def test_a_bug_behind_the_door_is_answered_as_one(tmp_path, opened) -> None:
    def broken(_request: Request, _line: Line) -> Answer:
        raise KeyError("oops")

    opened(tmp_path / "door.sock", broken)

    answer = ask(str(tmp_path / "door.sock"), asking("x"), patience=5)

    assert answer is not None
    assert (answer.code, answer.err) == (3, "lockgate: KeyError: 'oops'\n")


def test_no_answer_in_time_is_told(tmp_path, opened) -> None:
    released = threading.Event()

    def late(_request: Request, _line: Line) -> Answer:
        released.wait(10)
        return Answer(0)

    opened(tmp_path / "door.sock", late)

    answer = ask(str(tmp_path / "door.sock"), asking("x"), patience=0.1)

    released.set()
    assert answer is not None
    assert "no answer within" in answer.err


# --- a connection that is taken -----------------------------------------------------------------


def asked_in_version_3(path: Path, *argv: str, behind: bytes = b"") -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(str(path))
    connection.sendall(counted(packed_request(asking(*argv))) + behind)
    return connection


def test_a_request_that_says_its_length_is_answered_while_the_caller_may_still_send(
    tmp_path, opened
) -> None:
    opened(tmp_path / "door.sock", echo)

    with asked_in_version_3(tmp_path / "door.sock", "task", "list") as connection:
        answer = parsed_answer(doors.received(connection))

    assert answer is not None
    assert (answer.code, answer.out) == (4, "|/||('task', 'list')\n")


def test_a_request_in_pieces_is_the_same_request(tmp_path, opened) -> None:
    opened(tmp_path / "door.sock", echo)
    raw = counted(packed_request(asking("x", stdin="y" * 100_000)))

    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(tmp_path / "door.sock"))
        for at in range(30):
            connection.sendall(raw[at : at + 1])
            time.sleep(0.002)
        connection.sendall(raw[30:])
        answer = parsed_answer(doors.received(connection))

    assert answer is not None
    assert answer.out.endswith("|('x',)\n")


@pytest.mark.parametrize("raw", [b"3\0000000x2\0t\0", b"3\0" + b"0" * 9, b"3\000000009\0t\0"])
def test_a_request_with_a_wrong_length_is_not_understood(tmp_path, opened, raw) -> None:
    opened(tmp_path / "door.sock", echo)

    assert knock(tmp_path / "door.sock", raw).err.startswith("lockgate: the request was not")


def test_a_taken_connection_goes_both_ways_and_holds_no_place(tmp_path, opened) -> None:
    taken = list[socket.socket]()

    def takes(request: Request, line: Line) -> Answer | None:
        if request.argv == ("x",):
            return Answer(0)
        taken.append(line.take())
        line.out("nobody hears this")
        return None

    door = opened(tmp_path / "door.sock", takes, at_once=1)
    callers = [asked_in_version_3(tmp_path / "door.sock", "talk", behind=b"hi") for _ in range(5)]
    assert [it.recv(2) for it in callers] == [b"t\0"] * 5
    answer = ask(str(tmp_path / "door.sock"), asking("x"), patience=20)

    assert answer is not None
    assert answer.code == 0
    assert [it.recv(9) for it in taken] == [b"hi"] * 5
    for number, it in enumerate(taken):
        it.sendall(b"%d" % number)
    assert sorted(it.recv(9) for it in callers) == [b"0", b"1", b"2", b"3", b"4"]
    assert door.close()
    assert not door.busy
    for it in (*taken, *callers):
        it.close()


def test_the_client_gets_a_connection_or_why_there_is_none(tmp_path, opened) -> None:
    def takes(request: Request, line: Line) -> Answer | None:
        if request.argv != ("talk",):
            return Answer(1, err="lockgate: not for you\n")
        with line.take() as taken:
            taken.sendall(taken.recv(9).upper())
        return None

    path = tmp_path / "door.sock"
    opened(path, takes)

    connection = hot.take(str(path), ["talk"])
    connection.sendall(b"hi")
    assert connection.recv(9) == b"HI"
    connection.close()
    with pytest.raises(OSError, match="lockgate: not for you"):
        hot.take(str(path), ["else"])
    with pytest.raises(FileNotFoundError):
        hot.take(str(tmp_path / "nobody"), ["talk"])


def test_a_caller_who_has_gone_is_not_taken(tmp_path, opened) -> None:
    errors, begun, left = list[OSError](), threading.Event(), threading.Event()

    def takes(_request: Request, line: Line) -> None:
        begun.set()
        left.wait(10)
        try:
            line.take()
        except OSError as error:
            errors.append(error)

    door = opened(tmp_path / "door.sock", takes)
    with asked_in_version_3(tmp_path / "door.sock", "talk"):
        assert begun.wait(10)
    left.set()

    assert door.close()
    assert len(errors) == 1


def test_what_a_caller_asked_who_did_not_wait_for_it_is_not_begun(tmp_path, opened) -> None:
    heard, first = list[tuple[str, ...]](), threading.Event()

    def listens(request: Request, _line: Line) -> Answer:
        heard.append(request.argv)
        first.wait(10)
        return Answer(0)

    door = opened(tmp_path / "door.sock", listens, at_once=1)
    with asked_in_version_3(tmp_path / "door.sock", "first"):
        while not heard:
            time.sleep(0.01)
        with asked_in_version_3(tmp_path / "door.sock", "second"):
            while door._busy < 2:
                time.sleep(0.01)
        first.set()
        assert door.close()

    assert heard == [("first",)]


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="needs SO_PEERCRED")
def test_a_request_carries_the_user_of_the_process_that_connected(tmp_path, opened) -> None:
    opened(tmp_path / "door.sock", lambda it, _: Answer(0, str(it.uid)))

    answer = ask(str(tmp_path / "door.sock"), asking("x"), patience=5)

    assert answer is not None
    assert answer.out == str(os.getuid())


# --- those who do not finish their request ------------------------------------------------------


@pytest.fixture
def knocking() -> Generator[Callable[..., list[socket.socket]]]:
    """Connects so many clients that send so much of a request and do not end it."""
    with contextlib.ExitStack() as stack:

        def knock_silently(path: Path, how_many: int, raw: bytes = b"") -> list[socket.socket]:
            made = list[socket.socket]()
            for _ in range(how_many):
                connection = stack.enter_context(socket.socket(socket.AF_UNIX))
                connection.connect(str(path))
                connection.settimeout(10)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    connection.sendall(raw)
                made.append(connection)
            return made

        yield knock_silently


def turned_away(connections: list[socket.socket]) -> int:
    """How many the other end has closed."""
    closed = 0
    for connection in connections:
        connection.settimeout(0.0)
        with contextlib.suppress(BlockingIOError):
            try:
                closed += connection.recv(1) == b""
            except ConnectionResetError:
                closed += 1
    return closed


@pytest.mark.parametrize("raw", [b"", b"2\0t\0/\0"], ids=["silent", "half a request"])
def test_clients_that_do_not_finish_their_request_hold_up_nobody(
    tmp_path, opened, knocking, raw
) -> None:
    path = tmp_path / "door.sock"
    opened(path, echo, at_once=2)
    silent = knocking(path, 20, raw)
    begin = time.monotonic()

    answer = ask(str(path), asking("x"), patience=20)

    assert answer is not None
    assert answer.code == 4
    assert time.monotonic() - begin < 5
    assert turned_away(silent) == 0


def test_an_end_whose_queue_is_full_is_there_and_is_waited_for(tmp_path) -> None:
    path = str(tmp_path / "door.sock")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as first:
        listening.bind(path)
        listening.listen(0)
        first.connect(path)

        answer = ask(path, asking("x"), patience=0.3)

    assert answer is not None
    assert "no answer within" in answer.err


def test_of_many_that_wait_the_oldest_are_turned_away(tmp_path, opened, knocking) -> None:
    path = tmp_path / "door.sock"
    opened(path, echo)
    silent = knocking(path, MOST_WAITING + 50)

    answer = ask(str(path), asking("x"), patience=20)

    assert answer is not None
    assert answer.code == 4
    assert 50 <= turned_away(silent[:51]) <= 51
    assert turned_away(silent[51:]) == 0


def test_of_many_long_requests_that_wait_no_more_than_so_many_bytes_are_kept(
    tmp_path, opened, knocking
) -> None:
    path = tmp_path / "door.sock"
    opened(path, echo)
    long = b"x" * (LONGEST - 1)
    most = MOST_BYTES // len(long)

    unfinished = knocking(path, most + 5, long)
    answer = ask(str(path), asking("x"), patience=20)

    assert answer is not None
    assert answer.code == 4
    assert turned_away(unfinished) >= 5


def test_a_request_that_comes_byte_by_byte_has_so_long_in_all(
    tmp_path, opened, knocking, monkeypatch
) -> None:
    monkeypatch.setattr(doors, "PATIENCE", 0.5)
    opened(tmp_path / "door.sock", echo)
    (slow,) = knocking(tmp_path / "door.sock", 1)
    begin = time.monotonic()

    while not turned_away([slow]) and time.monotonic() - begin < 10:
        with contextlib.suppress(OSError):
            slow.sendall(b"x")
        time.sleep(0.05)

    assert 0.5 <= time.monotonic() - begin < 10


def test_a_door_does_not_wait_for_silent_clients_when_it_closes(tmp_path, opened, knocking) -> None:
    silent_at = opened(tmp_path / "door.sock", echo)
    silent = knocking(tmp_path / "door.sock", 3)
    assert ask(str(tmp_path / "door.sock"), asking("x"), patience=5)
    begin = time.monotonic()

    assert silent_at.close()

    assert time.monotonic() - begin < 2
    assert not silent_at.busy
    assert turned_away(silent) == 3


@pytest.mark.parametrize(
    ("field", "lively", "columns"),
    [("", False, 0), ("1", True, 0), ("1 120", True, 120), (" 80", False, 80)],
)
def test_a_request_says_who_sees_the_answer_and_how_wide_the_terminal_is(
    field, lively, columns
) -> None:
    raw = b"\0".join((b"2", b"", b"/", b"/bin", field.encode(), b"", b"status"))

    request = parsed_request(raw)

    assert request is not None
    assert (request.lively, request.columns, request.argv) == (lively, columns, ("status",))
    assert packed_request(request) == raw


@pytest.mark.parametrize("field", ["1 x", "1 -3", "1 99999999", "1 8 8", "1 ²"])
def test_a_width_that_is_none_counts_as_no_terminal(field) -> None:
    request = parsed_request(b"\0".join((b"2", b"", b"/", b"", field.encode(), b"", b"x")))

    assert request is not None
    assert request.columns == 0
