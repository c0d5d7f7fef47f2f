"""What every test gets: a home of its own, bounded properties, and the record of requirements."""

import gc
import json
import os
import signal
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, Phase, settings

from lockgate.adapters.store import sqlite
from lockgate.adapters.store.database import Database
from lockgate.adapters.store.sql_store import SqlStore
from lockgate.adapters.store.sqlite import SqliteDatabase, SqliteStore
from lockgate.core.config.ci import TARGETS

COVERAGE = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
NOWHERE = "/dev/null/no-test-may-use-the-default-data-folder"

settings.register_profile(
    "check",
    max_examples=60,
    stateful_step_count=30,
    derandomize=True,
    deadline=None,
    database=None,
)
settings.register_profile(
    "soak",
    max_examples=5_000,
    stateful_step_count=100,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    phases=tuple(Phase),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "check"))


# --- a home of its own --------------------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def _no_default_data_folder() -> Generator[None]:
    """Code that looks for the default data folder gets a path under a file: it raises."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("LOCKGATE_", "GIT_")) or name in TARGETS:
                patch.delenv(name)
        patch.setenv("XDG_STATE_HOME", NOWHERE)
        patch.setenv("HOME", NOWHERE)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield


@pytest.fixture(autouse=True)
def home(
    _no_default_data_folder: None,  # asked for its order only
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """The data folder of this test. HOME is a fresh folder too; no session's token is set."""
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("LOCKGATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("LOCKGATE_TOKEN", raising=False)
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def _stores_are_closed(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A test's stores end with it: from 3.13 on Python complains of a connection left open."""
    opened: list[SqlStore] = []
    make = SqlStore.__init__

    def noted(self: SqlStore, database: Database) -> None:
        make(self, database)
        opened.append(self)

    monkeypatch.setattr(SqlStore, "__init__", noted)
    yield
    for store in opened:
        store.close()


# --- what is measured ----------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Coverage costs a short program more than its own time, so few tests ask for it."""
    with pytest.MonkeyPatch.context() as patch, _not_measured(item):
        if item.get_closest_marker("measured") is None:
            for name in COVERAGE:
                patch.delenv(name, raising=False)
        return (yield)


@contextmanager
def _not_measured(item: pytest.Item) -> Generator[None]:
    stopped: list[Coverage] = []  # in a worker they are nested
    if item.get_closest_marker("unmeasured") is not None:
        while (measuring := Coverage.current()) is not None:
            measuring.stop()
            stopped.append(measuring)
    try:
        yield
    finally:
        for it in reversed(stopped):
            it.start()


def pytest_collection_finish() -> None:
    """Ten thousand tests stay to the end: the garbage collection need not look at them again."""
    gc.collect()
    gc.freeze()


# --- quick databases -----------------------------------------------------------------------------


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An empty SQLite store with every migration, as a file's bytes."""
    path = tmp_path_factory.mktemp("migrated") / "lockgate.db"
    SqliteStore(path).close()
    return path.read_bytes()


@pytest.fixture(autouse=True)
def _databases_are_quick(migrated: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process a new database is a copy, and nothing waits for the disk.

    No test cuts the power, so none can see the difference. The tests of the store itself turn this
    off, and a program that a test starts never has it.
    """
    connect = SqliteDatabase._connect

    def make_file(path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            half = path.with_name(f"{path.name}.{uuid4().hex}")
            os.close(os.open(half, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            half.write_bytes(migrated)
            with suppress(FileExistsError):
                path.hardlink_to(half)
            half.unlink()

    monkeypatch.setattr(sqlite, "_make_file", make_file)
    monkeypatch.setattr(SqliteDatabase, "_connect", lambda self, _synchronous: connect(self, "OFF"))
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


# --- in CI nothing real may be missing ----------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_missing_part(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_missing_part(report)
    return report


def _refuse_missing_part(report: pytest.TestReport | pytest.CollectReport) -> None:
    """With CI set, a skip whose reason starts with `needs ` is a failure."""
    if not os.environ.get("CI") or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if reason.startswith("needs "):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where nothing may be missing: {reason}"


# --- signals --------------------------------------------------------------------------------------


def _pass_signals_on() -> None:
    """What `nohup` and `&` have the tests ignore, the programs that they start do not ignore."""
    for it in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(it) is signal.SIG_IGN:
            signal.signal(it, lambda _number, _frame: None)


# --- which requirements were proved -------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--req-results", metavar="FILE", help="write requirement ids and outcomes")


def pytest_configure(config: pytest.Config) -> None:
    _pass_signals_on()
    path = config.getoption("--req-results")
    if path and not hasattr(config, "workerinput"):  # under xdist the controller alone writes
        config.pluginmanager.register(RequirementRecord(Path(path)), "requirement-record")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Reports carry user properties, and xdist carries reports to its controller."""
    for item in items:
        for id in _required(item):
            item.user_properties.append(("req", id))


def _required(item: pytest.Item) -> Iterable[str]:
    return dict.fromkeys(str(id) for mark in item.iter_markers("req") for id in mark.args)


class RequirementRecord:
    """Requirement id → [test id, outcome], written as JSON when the run ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[str, str] = {}
        self.tests: dict[str, set[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for key, id in report.user_properties:
            if key == "req":
                self.tests.setdefault(str(id), set()).add(report.nodeid)
        # A test passed when its call did and neither its set-up nor its tear-down went wrong.
        if report.when == "call" or report.outcome != "passed":
            before = self.outcomes.get(report.nodeid)
            self.outcomes[report.nodeid] = "failed" if before == "failed" else report.outcome

    def pytest_sessionfinish(self) -> None:
        found = {
            id: [[test, self.outcomes.get(test, "not run")] for test in sorted(tests)]
            for id, tests in sorted(self.tests.items())
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
