"""The commands that agents and hooks run often, handed to the listener of a unix socket.

It runs by path too (`python -I -S client.py ARGS`) and imports nothing that takes time to load.
"""

import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 1 << 20
CONNECTS, ANSWERS = 2.0, 10.0  # seconds until somebody is there, and until they have begun
AGAIN = 0.02  # seconds until another try where too many wait to be let in
# What only looks, and is done without an orchestrator where one does not answer.
LOOKING = (
    *(["task", it] for it in ("list", "show", "why")),
    *(["gate", it] for it in ("list", "check", "explain")),
    ["queue", "list"],
    ["status"],
)
JUDGING = ["gate", "run"]  # the same, but it takes its time
INPUT_WITHIN = 0.2  # seconds for the first byte of a hook's input
BEGUN = b"o\0"  # what is sent where a command has begun
TAKEN = b"t\0"  # what is sent where a connection is taken
TOO_LONG = 100  # bytes of an address that may not fit


def call(argv: list[str]) -> int | None:
    """The command's exit code; None where no orchestrator is there to ask."""
    inside = os.environ.get("LOCKGATE_SOCKET")
    path = inside or os.path.join(home(), "door.sock")  # noqa: PTH118 - pathlib is slow to load
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        argv, text = _with_input(json_last(argv), inside=bool(inside))
        send(connection, path, argv, text)
        code, printed = _printed(connection, None if inside else argv)
    except TimeoutError:
        return _fail(f"{path}: too busy") if inside else _not_answered(argv, connection)
    except OSError as error:
        return _fail(f"{error.filename or path}: {error.strerror}") if inside else None
    finally:
        connection.close()
    if code is None and (inside or printed):
        return _fail("the connection ended before an answer came")
    if code is not None and not inside and argv == ["status"]:
        _compare_versions()
    return code


def take(path: str, argv: list[str]) -> _socket.socket:
    """A connection that who listens there has taken: from here on both ends send what they like.

    OSError where nobody listens, or where nobody takes it: that one says why. TimeoutError where
    who listens does not answer.
    """
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connect(connection, path)
        connection.settimeout(ANSWERS)
        connection.sendall(counted(_packed(argv, b"")))
        said = connection.recv(1) + connection.recv(1)
        if said == TAKEN:
            connection.settimeout(None)
            return connection
        while chunk := _received(connection):
            said += chunk
    except BaseException:
        connection.close()
        raise
    connection.close()
    raise OSError(refusal(said))


def json_last(argv: list[str]) -> list[str]:
    """The same command with a `--json` in front of it behind it; without a command, the board's."""
    if argv[:1] != ["--json"] or "--" in argv:
        return argv
    return [*(argv[1:] or ["task", "list"]), "--json"]


def home() -> str:
    """As bootstrap.home_of, without what that imports."""
    environ = os.environ
    if environ.get("LOCKGATE_HOME"):
        return os.path.abspath(environ["LOCKGATE_HOME"])  # noqa: PTH100 - pathlib is slow to load
    user = os.path.expanduser("~")  # noqa: PTH111 - pathlib is slow to load
    if sys.platform == "darwin":
        return f"{user}/Library/Application Support/lockgate"
    return f"{environ.get('XDG_STATE_HOME') or f'{user}/.local/state'}/lockgate"


def login_file() -> str:
    """What is remembered of a login at a server, where there was one."""
    return os.path.join(home(), "login.json")  # noqa: PTH118 - pathlib is slow to load


def is_elsewhere() -> bool:
    """Whether commands go to a server; never those of an agent's session."""
    environ = os.environ
    said = environ.get("LOCKGATE_SERVER", "")
    if said == "off" or environ.get("LOCKGATE_SOCKET") or environ.get("LOCKGATE_TOKEN"):
        return False
    return bool(said) or os.path.exists(login_file())  # noqa: PTH110 - pathlib is slow to load


def _with_input(argv: list[str], *, inside: bool) -> tuple[list[str], bytes]:
    """What the command gets to read: a hook's JSON, or a file that only this side can see."""
    if argv[:1] == ["checkpoint"]:
        return argv, _input(INPUT_WITHIN)
    if inside and argv[:2] == ["review", "submit"]:
        return _with_file(argv)
    return argv, b""


def _with_file(argv: list[str]) -> tuple[list[str], bytes]:
    """The file is read here, in the session; `-` and what it says are sent."""
    at = next((n for n, it in enumerate(argv) if it.partition("=")[0] == "--file"), len(argv))
    option, joined, name = argv[at].partition("=") if at < len(argv) else ("", "", "")
    if option and not joined and at + 1 < len(argv):
        at, option, name = at + 1, "", argv[at + 1]
    if not name:
        return argv, b""
    sent = [*argv[:at], f"{option}{joined}-", *argv[at + 1 :]]
    return sent, whole_input() if name == "-" else content(name)


def whole_input() -> bytes:
    """All of stdin; nothing where it is a terminal."""
    return _input(None)


def _input(within: float | None) -> bytes:
    """All of stdin; nothing where it is a terminal, or where nothing comes in time."""
    if os.isatty(0):
        return b""
    if within is not None:
        import select

        if not select.select([0], [], [], within)[0]:
            return b""
    return _read(0)


def content(name: str) -> bytes:
    descriptor = os.open(name, os.O_RDONLY)
    try:
        return _read(descriptor)
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> bytes:
    text = b""
    while len(text) <= LONGEST and (chunk := os.read(descriptor, 1 << 16)):
        text += chunk
    if len(text) > LONGEST:
        raise OSError(27, "the input is more than 1 MB")
    return text


def _packed(argv: list[str], text: bytes) -> bytes:
    try:
        where = os.getcwd()  # noqa: PTH109 - pathlib is slow to load
    except OSError:
        where = ""
    said = (os.environ.get("LOCKGATE_TOKEN", ""), where, os.environ.get("PATH", ""))
    return packed(said, argv, text)


def packed(said: tuple[str, str, str], argv: list[str], text: bytes) -> bytes:
    """A request: the caller's token, where they are and their PATH come first."""
    seen = f"{'1' if os.isatty(2) else ''} {columns_of(1) or ''}".rstrip()
    fields = [b"2", *map(os.fsencode, (*said, seen)), text]
    return b"\0".join(it.replace(b"\0", b"") for it in (*fields, *map(os.fsencode, argv)))


def counted(request: bytes) -> bytes:
    """In the version whose requests say how long they are, so that more may follow."""
    fields = request[request.index(b"\0") + 1 :]
    return b"3\0%08d\0%b" % (len(fields), fields)


def columns_of(descriptor: int) -> int:
    """How wide a terminal is; 0 where the descriptor is none."""
    try:
        return os.get_terminal_size(descriptor).columns
    except OSError:
        return 0


def send(connection: _socket.socket, path: str, argv: list[str], text: bytes = b"") -> None:
    """A whole request; TimeoutError where too many wait to be let in."""
    connect(connection, path)
    connection.sendall(_packed(argv, text))
    connection.shutdown(_socket.SHUT_WR)


def _printed(connection: _socket.socket, argv: list[str] | None) -> tuple[int | None, bool]:
    """The exit code, if one came, and whether anything was printed until then.

    What comes is printed as it comes: fields that end with NUL, each of a kind.
    """
    printed, rest = False, b""
    for chunk in _chunks(connection, argv):
        *fields, rest = (rest + chunk).split(b"\0")
        for field in fields:
            if field[:1] == b"x":
                return int(field[1:]), printed
            if field[1:]:
                say(1 if field[:1] == b"o" else 2, field[1:])
                printed = True
    return None, printed


def _chunks(connection: _socket.socket, argv: list[str] | None) -> "Iterator[bytes]":
    """Until the other end has no more to say; TimeoutError where it says nothing for too long.

    The first field, which is empty, says that the command has begun. A session's runner, for
    which there is no `argv`, may take its time.
    """
    begun = False
    connection.settimeout(ANSWERS if argv else None)
    while True:
        try:
            chunk = connection.recv(1 << 16)
        except TimeoutError:
            if not begun or _is(argv, LOOKING):
                raise
            say(2, b"lockgate: the orchestrator has begun, and is still at it\n")
            connection.settimeout(None)
            continue
        except OSError:
            return
        if not chunk:
            return
        begun = True
        if chunk != BEGUN or _is(argv, (JUDGING,)):
            connection.settimeout(None)
        yield chunk


def _is(argv: list[str] | None, known: tuple[list[str], ...]) -> bool:
    return any((argv or [])[: len(it)] == it for it in known)


def _compare_versions() -> None:
    """Says it where the orchestrator is of another version than this program."""
    try:
        from lockgate import __version__
    except ImportError:  # run by path
        return
    try:
        with open(f"{home()}/orchestrator.pulse", encoding="utf-8") as file:  # noqa: PTH123 - no pathlib here
            theirs = file.read().partition('"version": "')[2].partition('"')[0]
    except (OSError, ValueError):
        return
    if theirs != __version__:
        why = f"the orchestrator is version {theirs or 'unknown'}, this command is {__version__}"
        say(2, f"note: {why}: lockgate down, then lockgate up\n".encode())


def _not_answered(argv: list[str], connection: _socket.socket) -> int | None:
    """None where the command can be done without an orchestrator."""
    why, fix = unanswered(home(), connection)
    alone = _is(argv, (*LOOKING, JUDGING))
    what = "this is done without the orchestrator" if alone else "nothing was done"
    if argv == ["wake"]:
        what = "what you asked for is recorded and waits for the orchestrator"
    say(2, os.fsencode(f"lockgate: {what}: {why}\n  {fix}\n"))
    return None if alone else 1


def unanswered(home: str, connection: _socket.socket) -> tuple[str, str]:
    """Who does not answer, since when and at what, and what to do about it."""
    try:
        from lockgate.faces import silence
    except ImportError:  # run by path
        return "the orchestrator does not answer", "lockgate down"
    return silence.told(home, silence.peer(connection))


def refusal(said: bytes) -> str:
    """What went to stderr instead."""
    told = b"".join(it[1:] for it in said.split(b"\0") if it[:1] == b"e")
    text = told.decode("utf-8", "replace").strip()
    return text or "the connection ended before an answer came"


def _received(connection: _socket.socket) -> bytes:
    try:
        return connection.recv(1 << 16)
    except OSError:
        return b""


def connect(connection: _socket.socket, path: str) -> None:
    """TimeoutError where too many wait to be let in, for so long."""
    connection.settimeout(CONNECTS)
    for _ in range(int(CONNECTS / AGAIN)):
        try:
            return _connect(connection, path)
        except BlockingIOError:
            import select

            select.select([], [], [], AGAIN)
    raise TimeoutError


def _connect(connection: _socket.socket, path: str) -> None:
    if len(os.fsencode(path)) < TOO_LONG:
        connection.connect(path)
        return
    directory, name = os.path.split(path)
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        connection.connect(f"/proc/self/fd/{descriptor}/{name}")
    finally:
        os.close(descriptor)


def say(descriptor: int, text: bytes) -> bool:
    """At once, as it is; False where the reader has gone."""
    try:
        while text:
            text = text[os.write(descriptor, text) :]
    except BrokenPipeError:
        return False
    except OSError:
        pass
    return True


def _fail(why: str) -> int:
    say(2, os.fsencode(f"lockgate: nothing was done: {why}\n"))
    return 1


if __name__ == "__main__":
    sys.exit(call(sys.argv[1:]))
