"""Starts the services that a command needs, each with data and a port of its own, then becomes it.

Run by path and alone, where the command runs: `serving.py ORDER COMMAND…`. Without a command it
makes the data that later instances start from. All that it starts ends with the command: a keeper
between the two is told by the kernel when the command is gone.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import string
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

LOCALHOST = "127.0.0.1"
DEBIAN, OTHERS = "/usr/lib/postgresql", ("/usr/local/pgsql/bin", "/usr/local/bin", "/usr/bin")
USER, DATABASE = "postgres", "app"
NOT_READY = 125
TAIL = 4000  # bytes of a service's output that are shown
LOOK_EVERY = 0.01  # seconds between two looks whether a server is ready; a command is asked rarely
ASK_EVERY = 0.1
ENDS_WITHIN = 20.0  # seconds for a server that is asked to end
TRIES = 3  # of a free port, which another program may take before the server does
LONGEST_SOCKET = 90  # characters of the path of a socket's directory
PR_SET_PDEATHSIG = 1
IN_USE = "in use"  # what servers say of a port, in whatever words around it
# PostgreSQL has shared memory to give back, whatever becomes of its data.
KEEPING = {"postgres": signal.SIGINT, "redis": signal.SIGTERM, "": signal.SIGTERM}
LEAVING = {"postgres": signal.SIGQUIT}
THROW_AWAY = (  # nobody needs the data after a crash
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "shared_buffers=32MB",
    "dynamic_shared_memory_type=mmap",
    f"listen_addresses={LOCALHOST}",
)


class Asked(TypedDict):
    """One service, as the configuration has it. `kind` is empty where `command` starts it."""

    name: str
    kind: str
    command: str
    ready: str
    port: int  # 0: any that is free
    env: dict[str, str]
    prepare: str


class Order(TypedDict):
    place: str  # a directory for what the services write
    told: str  # a directory for how they fare: `ready`, `failed`, `ended`
    prepared: str  # data that instances start from, by the name of the service; may be empty
    within: float  # seconds for each to become ready
    ports: str  # a command that must come before them; empty where none must
    services: list[Asked]


class Failed(Exception):
    """A service that cannot be used, in words for people."""


class Instance:
    """One service that runs, or is about to."""

    def __init__(self, asked: Asked, order: Order) -> None:
        self.asked, self.name, self.kind = asked, asked["name"], asked["kind"]
        self.place = f"{order['place']}/{self.name}"
        self.data, self.log = f"{self.place}/data", f"{order['told']}/{self.name}.log"
        self.making = False  # its data is made, to be kept
        self.new = False  # its data was not copied from what was prepared
        self.port, self.password = asked["port"], os.urandom(16).hex()
        self.handle = -1  # of its place
        self.process: subprocess.Popen[bytes] | None = None

    def variables(self) -> dict[str, str]:
        """What the command finds it by. Two of a kind are told apart by their names."""
        own = "".join(it if it.isalnum() else "_" for it in self.name).upper()
        url = self._url()
        named = {f"{own}_HOST": LOCALHOST, f"{own}_PORT": str(self.port)}
        return named | ({f"{own}_URL": url} if url else {}) | self._usual(url)

    def last_words(self) -> str:
        return _tail_of(self.log)

    def _url(self) -> str:
        if self.kind == "postgres":
            where = f"{USER}:{self.password}@{LOCALHOST}:{self.port}"
            return f"postgresql://{where}/{DATABASE}"
        if self.kind == "redis":
            return f"redis://default:{self.password}@{LOCALHOST}:{self.port}/0"
        return ""

    def _usual(self, url: str) -> dict[str, str]:
        if self.kind == "postgres":
            found = {"PGHOST": LOCALHOST, "PGPORT": str(self.port), "PGUSER": USER}
            return found | {
                "PGPASSWORD": self.password,
                "PGDATABASE": DATABASE,
                "DATABASE_URL": url,
            }
        if self.kind == "redis":
            found = {"REDIS_HOST": LOCALHOST, "REDIS_PORT": str(self.port)}
            return found | {"REDIS_PASSWORD": self.password, "REDIS_URL": url}
        return {}


def program(name: str) -> str | None:
    """Where it is: on PATH, or where PostgreSQL's programs are put, the newest version first."""
    with contextlib.suppress(OSError):
        versions = [it for it in os.listdir(DEBIAN) if it.isdigit()]  # noqa: PTH208 - no pathlib
        newest = [f"{DEBIAN}/{it}/bin" for it in sorted(versions, key=int, reverse=True)]
        path = os.pathsep.join((os.environ.get("PATH", os.defpath), *newest, *OTHERS))
        return shutil.which(name, path=path)
    return shutil.which(name)


PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "postgres": ("postgres", "initdb", "psql"),
    "redis": ("redis-server",),
}


def missing(kind: str) -> str:
    """The program of that kind of service that is not installed; empty where all are."""
    return next((it for it in PROGRAMS.get(kind, ()) if program(it) is None), "")


# In the box: a keeper process starts the services and stays. Its parent becomes the command.


def main(order: Order, command: list[str]) -> int:
    os.makedirs(order["told"], exist_ok=True)  # noqa: PTH103 - no pathlib
    if not command:
        return _made(order)
    heard, saying = os.pipe()
    starter = os.getpid()
    if os.fork() == 0:
        os.close(heard)
        Keeper(order, starter).keep(saying)
        os._exit(0)
    os.close(saying)
    with open(heard, encoding="utf-8") as word:  # noqa: PTH123 - a descriptor
        said = word.read()
    if said:
        os.environ.update(json.loads(said))
        os.execvp(command[0], command)  # noqa: S606 - the whole purpose
    sys.stderr.write(f"{_told(order, 'failed')}\n")
    return NOT_READY


class Keeper:
    """Starts the services, then waits for the end of one of them, or of the command."""

    def __init__(self, order: Order, starter: int) -> None:
        self._order, self._starter = order, starter
        self._instances: list[Instance] = []

    def keep(self, saying: int) -> None:
        _leave_terminal()
        signal.signal(signal.SIGTERM, _ends)
        _die_with_parent(signal.SIGTERM)
        try:
            if os.getppid() != self._starter:
                return
            variables = self.started()
            _tell(self._order, "ready", "")
            os.write(saying, json.dumps(variables).encode())
            os.close(saying)
            self._watch()
        except (Failed, OSError) as error:
            _tell(self._order, "failed", str(error))
        finally:
            self.stop(kept=False)
            shutil.rmtree(self._order["place"], ignore_errors=True)

    def started(self, *, making: bool = False) -> dict[str, str]:
        """All of them, in order; the variables by which they are found."""
        variables: dict[str, str] = {}
        if self._order["ports"]:
            _let_through(self._order)
        for asked in self._order["services"]:
            instance = Instance(asked, self._order)
            instance.making = making
            self._instances.append(instance)
            _start(instance, self._order, variables)
            variables = instance.variables() | variables
            given = {**os.environ, **variables}
            for name, value in asked["env"].items():
                variables[name] = string.Template(value).safe_substitute(given)
            if making and asked["prepare"]:
                _prepare(instance, self._order, variables)
        return variables

    def stop(self, *, kept: bool) -> None:
        """The last first, as others may need it; gently where what they wrote is kept."""
        for it in reversed(self._instances):
            if it.process is None or it.process.poll() is not None:
                continue
            _signal(it, (KEEPING if kept else LEAVING).get(it.kind, signal.SIGKILL))
            try:
                it.process.wait(ENDS_WITHIN)
            except subprocess.TimeoutExpired:
                _signal(it, signal.SIGKILL)
                it.process.wait()

    def _watch(self) -> None:
        """A command that ends well has started something in the background, which is its way."""
        left = {it.process.pid: it for it in self._instances if it.process}
        while left:
            pid, status = os.waitpid(-1, 0)
            it = left.pop(pid, None)
            if it is None or it.process is None:
                continue
            it.process.returncode = os.waitstatus_to_exitcode(status)
            if it.kind or it.process.returncode:
                _tell(self._order, "ended", f"{it.name} {_ended(it)}")
        while True:
            signal.pause()


def _made(order: Order) -> int:
    """Start them once, have each prepared, and leave what they wrote in the place."""
    keeper = Keeper(order, os.getppid())
    signal.signal(signal.SIGTERM, _ends)
    try:
        keeper.started(making=True)
    except (Failed, OSError) as error:
        _tell(order, "failed", str(error))
        sys.stderr.write(f"{error}\n")
        keeper.stop(kept=False)
        return NOT_READY
    keeper.stop(kept=True)
    return 0


def _start(it: Instance, order: Order, variables: Mapping[str, str]) -> None:
    """With a port that is free; where another program takes that first, with the next one."""
    _lay_out(it, order)
    for last in (*[False] * (TRIES - 1), True):
        it.port = it.asked["port"] or _free_port()
        if it.asked["port"] and _is_taken(it.port):
            raise Failed(_wants_port(it))
        try:
            _run(it, order, variables)
        except Failed:
            if last or it.asked["port"] or IN_USE not in it.last_words():
                raise
        else:
            return


def _run(it: Instance, order: Order, variables: Mapping[str, str]) -> None:
    env = _surroundings(it, variables)
    with open(it.log, "wb") as log:  # noqa: PTH123 - no pathlib
        it.process = subprocess.Popen(  # noqa: S603 - what the configuration names
            _command_line(it),
            env=env,
            cwd=it.place if it.kind else None,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=_dying_with_us(it.kind),  # noqa: PLW1509 - no thread runs here
        )
    until = time.monotonic() + order["within"]
    while not _is_ready(it, env, until):
        ended = it.process.poll()
        if ended is not None and (it.kind or ended):
            raise Failed(f"{it.name} {_ended(it)}")
        if time.monotonic() > until:
            said = it.last_words() or "nothing"
            raise Failed(f"{it.name} was not ready within {order['within']:g} s; it said: {said}")
        time.sleep(LOOK_EVERY if it.kind else ASK_EVERY)
    if it.kind == "postgres":
        _give_password(it)


def _surroundings(it: Instance, variables: Mapping[str, str]) -> dict[str, str]:
    """A gate has scratch of its own, and a session none."""
    own = {} if it.kind else {"PORT": str(it.port), "DATA": it.data}
    return {"SCRATCH": it.place, **os.environ, **variables, **own}


def _command_line(it: Instance) -> Sequence[str]:
    if it.kind == "postgres":
        fixed = (_needed("postgres"), "-D", it.data, "-p", str(it.port), "-k", _sockets(it))
        return (*fixed, *(word for option in THROW_AWAY for word in ("-c", option)))
    if it.kind == "redis":
        save = "3600 1" if it.making else ""  # a save point is what makes it save at its end
        where = ("--bind", LOCALHOST, "--port", str(it.port), "--dir", it.data)
        return (_needed("redis-server"), *where, "--save", save, "--requirepass", it.password)
    return ("/bin/sh", "-c", it.asked["command"])


def _is_ready(it: Instance, env: Mapping[str, str], until: float) -> bool:
    if it.kind == "postgres":
        with contextlib.suppress(OSError), open(f"{it.data}/postmaster.pid", "rb") as file:  # noqa: PTH123 - no pathlib
            return file.read().rstrip().endswith(b"\nready")
        return False
    if it.kind == "redis":
        return _answers(it)
    return not it.asked["ready"] or _says_yes(it.asked["ready"], env, until)


def _answers(it: Instance) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((LOCALHOST, it.port), 1.0) as way:
        way.sendall(f"AUTH {it.password}\r\nPING\r\n".encode())
        said = b""
        while b"PONG" not in said and (more := way.recv(64)):
            said += more
        return b"PONG" in said
    return False


def _says_yes(command: str, env: Mapping[str, str], until: float) -> bool:
    asked = ("/bin/sh", "-c", command)
    null = subprocess.DEVNULL
    left = max(0.1, until - time.monotonic())
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(  # noqa: S603 - what the configuration names
            asked, env=dict(env), stdin=null, stdout=null, stderr=null, timeout=left, check=False
        )
        return done.returncode == 0
    return False


def _lay_out(it: Instance, order: Order) -> None:
    """Its data: a copy of what was prepared, else what the program makes itself."""
    os.makedirs(it.place, 0o700)  # noqa: PTH103 - no pathlib
    it.handle = os.open(it.place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    prepared = f"{order['prepared']}/{it.name}/data"
    if order["prepared"] and os.path.isdir(prepared):  # noqa: PTH112 - no pathlib
        _do(it, ("cp", "-a", "--reflink=auto", prepared, it.data), "its data was not copied")
        return
    os.mkdir(it.data, 0o700)  # noqa: PTH102 - no pathlib
    it.new = True
    if it.kind == "postgres":
        how = ("--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync", "--no-instructions")
        what = ("--encoding=UTF8", "--locale=C.UTF-8", f"--username={USER}", "--wal-segsize=1")
        _do(it, (_needed("initdb"), "-D", it.data, *how, *what), "its data was not made")


def _give_password(it: Instance) -> None:
    """Until now nobody could log in but by the socket. A database is made with the first data."""
    psql = (_needed("psql"), "-X", "-q", "-h", _sockets(it), "-p", str(it.port), "-U", USER)
    made = f"CREATE DATABASE {DATABASE};\n" if it.new else ""
    asked = f"ALTER ROLE {USER} PASSWORD '{it.password}';\n{made}"  # our own hexadecimal digits
    _do(it, (*psql, "-d", "postgres", "-v", "ON_ERROR_STOP=1"), "its password was not set", asked)


def _prepare(it: Instance, order: Order, variables: Mapping[str, str]) -> None:
    log = f"{order['told']}/{it.name}.prepare"
    with open(log, "wb") as file:  # noqa: PTH123 - no pathlib
        done = subprocess.run(  # noqa: S603 - what the configuration names
            ("/bin/sh", "-c", it.asked["prepare"]),
            env=_surroundings(it, variables),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        said = _tail_of(log) or "nothing"
        raise Failed(f"prepare of {it.name} exited {done.returncode}; it said: {said}")


def _do(it: Instance, argv: Sequence[str], what: str, stdin: str = "") -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    done = subprocess.run(  # noqa: S603 - programs of the system
        argv, input=stdin.encode(), env=bare, capture_output=True, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", errors="replace").strip()[-TAIL:]
        raise Failed(f"{it.name} was not started: {what}: {said}")


def _needed(name: str) -> str:
    found = program(name)
    if found is None:
        raise Failed(f"the program {name} is not installed here")
    return found


def _let_through(order: Order) -> None:
    """It goes on in the background, with what it writes to."""
    log = f"{order['told']}/.ports"
    with open(log, "wb") as file:  # noqa: PTH123 - no pathlib
        done = subprocess.run(  # noqa: S603 - our own program
            ("/bin/sh", "-c", order["ports"]), stdout=file, stderr=file, check=False
        )
    if done.returncode:
        raise Failed(f"the ports that are let through: {_tail_of(log)}")


def _sockets(it: Instance) -> str:
    """Its directory, by a shorter name where its own is too long for a socket's."""
    long = len(it.place) > LONGEST_SOCKET
    return f"/proc/{os.getpid()}/fd/{it.handle}" if long else it.place


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOCALHOST, 0))
        return int(probe.getsockname()[1])


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCALHOST, port))
        except OSError:
            return True
    return False


def _wants_port(it: Instance) -> str:
    return (
        f"{it.name} wants port {it.port}, and another program listens there: agents share this "
        f"machine's network. Leave out `port`, and let the tests read the port from its variables"
    )


def _signal(it: Instance, how: signal.Signals) -> None:
    """A command's shell has what it started in its own group."""
    if it.process:
        with contextlib.suppress(ProcessLookupError):
            (os.kill if it.kind else os.killpg)(it.process.pid, how)


def _tail_of(path: str) -> str:
    with contextlib.suppress(OSError), open(path, "rb") as file:  # noqa: PTH123 - no pathlib
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
        return file.read().decode("utf-8", errors="replace").strip()
    return ""


def _ended(it: Instance) -> str:
    code = it.process.returncode if it.process else 0
    how = f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"
    return f"{how}; it said: {it.last_words() or 'nothing'}"


def _told(order: Order, name: str) -> str:
    with contextlib.suppress(OSError), open(f"{order['told']}/{name}", encoding="utf-8") as file:  # noqa: PTH123 - no pathlib
        return file.read()
    return "the services were not started"


def _tell(order: Order, name: str, text: str) -> None:
    """Whole or not at all, and of two the first."""
    path = f"{order['told']}/{name}"
    if not os.path.exists(path):  # noqa: PTH110 - no pathlib
        with open(f"{path}.new", "w", encoding="utf-8") as file:  # noqa: PTH123 - no pathlib
            file.write(text)
        os.rename(f"{path}.new", path)  # noqa: PTH104 - no pathlib


def _leave_terminal() -> None:
    """Services get no keys from the terminal, and their output does not appear there."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target)


def _dying_with_us(kind: str) -> Callable[[], None]:
    def before() -> None:
        os.setsid()
        _die_with_parent(LEAVING.get(kind, signal.SIGKILL))

    return before


def _die_with_parent(how: signal.Signals) -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, int(how), 0, 0, 0)


_LIBC = ctypes.CDLL(None)


def _ends(*_: object) -> None:
    """Once: what is tidied up then is not to be interrupted."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
