"""The orchestrator as a service of the user's."""

import os
import plistlib
import shutil
import stat
from pathlib import Path

import pytest

from lockgate.adapters import service_unit
from lockgate.adapters.service_unit import (
    Service,
    install,
    launchd_text,
    place_of,
    stopped,
    uninstall,
    unit_name,
    unit_text,
    verified,
)
from lockgate.adapters.system import rotated
from lockgate.errors import Refused, Unavailable

NEEDS_SYSTEMD = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze"
)


def service(home: Path, **more: object) -> Service:
    given = {"python": "/usr/bin/python3", "path": "/bin", "more": ("--web",)} | more
    return Service(home=home, **given)  # type: ignore[arg-type]  # each has its own type


def with_systemctl(place: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """A `systemctl` that notes what it is asked; the real one would change this machine."""
    log, folder = place / "asked", place / "bin"
    folder.mkdir()
    program = folder / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$@" >>"{log}"\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return log


def test_the_unit_restarts_always_and_leaves_runners_alone(tmp_path: Path) -> None:
    text = unit_text(service(tmp_path, database="postgresql://u:p%40w@h/d"))

    assert 'ExecStart="/usr/bin/python3" "-P" "-m" "lockgate" "up" "--web"\n' in text
    assert f'Environment="LOCKGATE_HOME={tmp_path}"\n' in text
    assert 'Environment="LOCKGATE_DATABASE=postgresql://u:p%%40w@h/d"\n' in text
    for line in ("Restart=always", "KillMode=process", "StandardError=journal"):
        assert f"{line}\n" in text


@NEEDS_SYSTEMD
@pytest.mark.parametrize("name", ["home", 'a "home" with %h and $HOME and \\ in it'])
def test_systemd_finds_nothing_wrong_with_it(tmp_path: Path, name: str) -> None:
    place = tmp_path / unit_name(tmp_path)
    place.write_text(unit_text(service(tmp_path / name)))

    assert verified(place) == ""
    place.write_text(place.read_text().replace('ExecStart="', "ExecStart="))
    assert "nbalanced quoting" in verified(place)


def test_a_service_is_installed_started_stopped_and_removed(tmp_path, monkeypatch) -> None:
    log = with_systemctl(tmp_path, monkeypatch, "exit 0")
    environ = {"HOME": str(tmp_path)}

    place = install(service(tmp_path / "home"), environ, start=True)

    assert place == tmp_path / ".config" / "systemd" / "user" / unit_name(tmp_path / "home")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stopped(tmp_path / "home", environ)
    assert uninstall(tmp_path / "home", environ) == place
    assert not place.exists()
    assert not stopped(tmp_path / "home", environ)
    asked = [line.split()[1] for line in log.read_text().splitlines()]
    assert asked == ["daemon-reload", "enable", "is-active", "stop", "disable", "daemon-reload"]
    with pytest.raises(Refused, match="none is installed"):
        uninstall(tmp_path / "home", environ)


def test_a_machine_without_a_session_of_systemd_is_told(tmp_path, monkeypatch) -> None:
    with_systemctl(tmp_path, monkeypatch, "echo no bus >&2; exit 1")
    environ = {"HOME": "/nowhere", "XDG_CONFIG_HOME": str(tmp_path)}

    with pytest.raises(Unavailable, match="no bus") as told:
        install(service(tmp_path / "home"), environ, start=True)

    assert "loginctl" in told.value.fix
    assert not stopped(tmp_path / "home", environ)


def test_a_unit_that_systemd_refuses_is_not_left(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(service_unit, "verified", lambda _: "line 3 is wrong")

    with pytest.raises(Unavailable, match="line 3 is wrong"):
        install(service(tmp_path / "home"), {"HOME": str(tmp_path)}, start=False)

    assert not place_of(tmp_path / "home", {"HOME": str(tmp_path)}).exists()


def test_on_macos_a_launchd_agent_is_written(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    environ = {"HOME": str(tmp_path)}

    place = install(service(tmp_path / "home"), environ, start=True)

    told = plistlib.loads(place.read_bytes())
    assert told == plistlib.loads(launchd_text(service(tmp_path / "home")).encode())
    assert told["ProgramArguments"][-2:] == ["up", "--web"]
    assert told["AbandonProcessGroup"] is True
    assert not stopped(tmp_path / "home", environ)
    uninstall(tmp_path / "home", environ)


# --- its log ------------------------------------------------------------------------------------


def test_a_long_log_is_put_aside_and_the_next_words_go_to_a_new_one(tmp_path: Path) -> None:
    log = tmp_path / "orchestrator.log"
    kept = os.dup(1), os.dup(2)
    try:
        for number in range(5):
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for it in (1, 2):
                os.dup2(descriptor, it)
            os.close(descriptor)
            os.write(2, f"words of {number}, which are long\n".encode())
            assert rotated(log, 10)
            assert not rotated(log, 10)
        os.write(2, b"new\n")
    finally:
        for it, was in zip((1, 2), kept, strict=True):
            os.dup2(was, it)
            os.close(was)

    assert log.read_text() == "new\n"
    texts = [it.read_text()[:10] for it in sorted(tmp_path.glob("orchestrator.log.*"))]
    assert texts == ["words of 4", "words of 3", "words of 2"]


def test_a_log_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "orchestrator.log"
    assert not rotated(log, 10)
    log.write_text("somebody else's words\n")

    assert not rotated(log, 10)
    assert log.read_text() == "somebody else's words\n"
