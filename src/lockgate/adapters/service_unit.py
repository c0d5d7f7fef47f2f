"""The orchestrator as a service of the user's: a systemd unit, or on macOS a launchd agent."""

import hashlib
import os
import plistlib
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from lockgate.adapters.run import Finished, run
from lockgate.errors import Refused, Unavailable

SECONDS = 60.0
NOT_INSTALLED = "no service was installed"


class Service(Struct, frozen=True, kw_only=True):
    """What is to run for a home, and where it is written down."""

    home: Path
    python: str
    path: str  # where agents' programs are found
    more: tuple[str, ...] = ()  # options of `lockgate up`
    database: str = ""  # LOCKGATE_DATABASE, where it is set

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.python, "-P", "-m", "lockgate", "up", *self.more)

    @property
    def environment(self) -> Mapping[str, str]:
        known = {"LOCKGATE_HOME": str(self.home), "PATH": self.path}
        return known | ({"LOCKGATE_DATABASE": self.database} if self.database else {})


def unit_name(home: Path) -> str:
    """One for each home, so that several can be installed."""
    return f"lockgate-{hashlib.sha256(os.fsencode(home)).hexdigest()[:8]}.service"


def unit_text(it: Service) -> str:
    """Runners live on when it is stopped: only the orchestrator itself is ended."""
    known = it.environment.items()
    environment = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in known)
    command = " ".join(_quoted(it).replace("$", "$$") for it in it.argv)
    return (
        "[Unit]\n"
        f"Description=Lockgate orchestrator of {_plain(str(it.home))}\n"
        "StartLimitIntervalSec=0\n"
        "\n[Service]\n"
        "Type=exec\n"
        f"ExecStart={command}\n"
        f"{environment}"
        "Restart=always\n"
        "RestartSec=5\n"
        "KillMode=process\n"
        "TimeoutStopSec=90\n"
        "StandardOutput=journal\n"
        "StandardError=journal\n"
        "SyslogIdentifier=lockgate\n"
        "\n[Install]\n"
        "WantedBy=default.target\n"
    )


def launchd_text(it: Service) -> str:
    """Untried: it was written by the manual, and no macOS has run it."""
    log = str(it.home / "logs" / "orchestrator.log")
    told: dict[str, object] = {
        "Label": unit_name(it.home).removesuffix(".service"),
        "ProgramArguments": list(it.argv),
        "EnvironmentVariables": dict(it.environment),
        "RunAtLoad": True,
        "KeepAlive": True,
        "AbandonProcessGroup": True,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    return plistlib.dumps(told).decode()


def place_of(home: Path, environ: Mapping[str, str]) -> Path:
    user = environ.get("HOME") or str(Path.home())
    if sys.platform == "darwin":
        name = unit_name(home).removesuffix(".service")
        return Path(user) / "Library" / "LaunchAgents" / f"{name}.plist"
    config = environ.get("XDG_CONFIG_HOME") or f"{user}/.config"
    return Path(config) / "systemd" / "user" / unit_name(home)


def install(it: Service, environ: Mapping[str, str], *, start: bool) -> Path:
    """Write it, check it where that can be done, and have it started now and at each login."""
    place = place_of(it.home, environ)
    mac = sys.platform == "darwin"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(launchd_text(it) if mac else unit_text(it), encoding="utf-8")
    place.chmod(0o600)  # the URL of a database may have a password
    if mac:
        return place
    wrong = verified(place)
    if wrong:
        place.unlink()
        fix = "this is a bug: please report it"
        raise Unavailable(NOT_INSTALLED, why=f"systemd refuses the unit: {wrong}", fix=fix)
    if start:
        _told("--user", "daemon-reload")
        _told("--user", "enable", "--now", place.name)
    return place


def uninstall(home: Path, environ: Mapping[str, str]) -> Path:
    place = place_of(home, environ)
    if not place.exists():
        what, why = "no service was removed", f"none is installed for {home}"
        raise Refused(what, why=why, fix="lockgate up --install")
    if sys.platform != "darwin":
        _ask("--user", "disable", "--now", place.name)
    place.unlink()
    if sys.platform != "darwin":
        _ask("--user", "daemon-reload")
    return place


def stopped(home: Path, environ: Mapping[str, str]) -> bool:
    """Whether a service of this home ran and was stopped; else it would be started again."""
    place = place_of(home, environ)
    if not place.exists() or sys.platform == "darwin":
        return False
    if _ask("--user", "is-active", "--quiet", place.name).code != 0:
        return False
    return _ask("--user", "stop", place.name).code == 0


def verified(place: Path) -> str:
    """What systemd finds wrong with it; nothing where it cannot be asked."""
    asked = ("systemd-analyze", "--user", "--man=no", "verify", str(place))
    try:
        with tempfile.TemporaryDirectory() as scratch:  # without a session it has none to look at
            done = run(asked, deadline=SECONDS, environment={"XDG_RUNTIME_DIR": scratch})
    except Unavailable:
        return ""
    return "; ".join(line for line in done.err.splitlines() if place.name in line)


def _told(*argv: str) -> None:
    done = _ask(*argv)
    if done.code != 0:
        why = done.err.strip() or f"systemctl {' '.join(argv)} gave {done.code}"
        fix = "log in as this user with a session of systemd (loginctl enable-linger), try again"
        raise Unavailable("the service is written, and was not started", why=why, fix=fix)


def _ask(*argv: str) -> Finished:
    try:
        return run(("systemctl", *argv), deadline=SECONDS)
    except Unavailable as error:
        return Finished(code=127, out="", err=error.why)


def _quoted(word: str) -> str:
    """As systemd reads it: nothing in it is replaced."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _plain(text: str) -> str:
    return text.replace("%", "%%").replace("\n", " ")
