"""A PostgreSQL server of our own: in a folder of its own, reached by a socket, ended by pid."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

_WHERE_DEBIAN_PUTS_THEM = Path("/usr/lib/postgresql")
_STARTS_WITHIN = 30.0


def missing() -> str:
    """Why no server can be started; empty where one can."""
    for name in ("initdb", "postgres"):
        if _program(name) is None:
            return f"needs PostgreSQL: {name} is not on PATH, nor in {_WHERE_DEBIAN_PUTS_THEM}"
    return ""


class Server:
    """A server that a test may stop and start."""

    def __init__(self, folder: Path, settings: tuple[str, ...]) -> None:
        self._folder, self._settings, self._user = folder, settings, _unprivileged_user()
        self.url = f"postgresql:///postgres?host={quote(str(folder), safe='')}&user=postgres"
        if self._user is not None:
            shutil.chown(folder, self._user)
        _make(folder / "data", self._user)
        self.start()

    def start(self) -> None:
        self._process = _start(self._folder, self._user, self._settings)
        _wait_until_up(self.url, self._process, self._folder / "log")

    def stop(self) -> None:
        """At once, as if its machine had gone down."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(30)

    def kill(self) -> None:
        """As by the kernel: nothing is put in order. Its children see it, and end by themselves."""
        self._process.kill()
        self._process.wait(30)

    def keep(self) -> None:
        """Make a standby that hears of no later commit; who uses the server notices nothing."""
        argv = [str(_program("pg_basebackup")), f"--host={self._folder}", "--username=postgres"]
        argv += [f"--pgdata={self._folder / 'standby'}", "--checkpoint=fast", "--no-sync"]
        subprocess.run(argv, user=self._user, cwd="/", check=True, timeout=60)

    def fail_over(self) -> None:
        """Once it was killed: the standby is the server, and what it has not heard of is lost."""
        shutil.rmtree(self._folder / "data")
        (self._folder / "standby").rename(self._folder / "data")
        self.start()

    def restart(self) -> None:
        self.stop()
        self.start()


@contextmanager
def server(*settings: str) -> Generator[Server]:
    """A fresh one; `settings` are its options, such as `fsync=off`."""
    folder = Path(tempfile.mkdtemp(prefix="lockgate-pg-", dir="/tmp"))  # a socket's path is short
    try:
        running = Server(folder, settings)
        try:
            yield running
        finally:
            running.stop()
    finally:
        shutil.rmtree(folder)


@contextmanager
def cluster(*settings: str) -> Generator[str]:
    """The URL of a fresh server."""
    with server(*settings) as running:
        yield running.url


def with_schema(url: str, schema: str) -> str:
    """The same server, seen through a fresh schema."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{url}&options={quote(f'-csearch_path={schema}')}"


def with_database(url: str, name: str) -> str:
    """The same server, and a fresh database."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return url.replace("///postgres?", f"///{name}?")


def remember(url: str) -> None:
    """The rows that are in the tables now, for `put_back`."""
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA remembered")
        for table in _tables(connection, "public"):
            if connection.execute(f"TABLE {table} LIMIT 1".encode()).fetchone():
                connection.execute(f"CREATE TABLE remembered.{table} AS TABLE {table}".encode())


def put_back(url: str) -> None:
    """Those rows and no others, which takes a seventh of a fresh copy. Who else is there goes."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute("SET session_replication_role = replica")  # in any order; no triggers
        emptied = [f"DELETE FROM {it}" for it in _tables(connection, "public")]  # noqa: S608  ours
        known = _tables(connection, "remembered")
        again = [f"INSERT INTO {it} TABLE remembered.{it}" for it in known]
        connection.execute("; ".join([*emptied, *again]).encode())


def _tables(connection: psycopg.Connection, schema: str) -> list[str]:
    statement = "SELECT tablename FROM pg_tables WHERE schemaname = %s"
    return [str(name) for (name,) in connection.execute(statement, [schema])]


def _make(data: Path, user: str | None) -> None:
    subprocess.run(
        [
            str(_program("initdb")),
            f"--pgdata={data}",
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ],
        user=user,
        cwd="/",
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=60,
    )


def _start(folder: Path, user: str | None, settings: tuple[str, ...]) -> subprocess.Popen[bytes]:
    options = [f"unix_socket_directories={folder}", "listen_addresses=", *settings]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [str(_program("postgres")), "-D", str(folder / "data")]
            + [part for option in options for part in ("-c", option)],
            user=user,
            cwd="/",
            stdout=log,
            stderr=log,
            start_new_session=True,  # an interrupt of the tests is ours to pass on
        )


def _wait_until_up(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + _STARTS_WITHIN
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(log.read_text(encoding="utf-8")) from None
            time.sleep(0.05)
        else:
            return


def _unprivileged_user() -> str | None:
    """PostgreSQL refuses to run as root."""
    return "postgres" if os.geteuid() == 0 else None


def _program(name: str) -> str | None:
    theirs = [str(it) for it in sorted(_WHERE_DEBIAN_PUTS_THEM.glob("*/bin"), reverse=True)]
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *theirs]))
