"""What the agents' modules use: finding a program, and reading what it printed.

A program is found with the least of this machine that it needs to run. What it prints is JSON a
line, in between anything at all, and cut anywhere.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo

from lockgate.adapters.harnesses.harness import Found
from lockgate.core.model.agents import Ending, Exit, Job

SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc", "/nix")))
SHEBANG_BYTES = 256
ARGUMENT_BYTES = 100_000  # the kernel takes 128 KiB
PROMPT_FILE = ".lockgate-prompt.md"
Event = Mapping[str, object]
SAID_CHARACTERS = 2000
SERVER = "lockgate"  # the name of our MCP server
TOOL_SECONDS = 4 * 3600  # that a tool may take: a step takes as long as its tests
STARTS_WITHIN = 60  # seconds for the server to answer first: nobody may have loaded it yet
SOCKET = "LOCKGATE_SOCKET"  # by which the server finds its session


def key_in_use(
    model: str, providers: Mapping[str, tuple[str, ...]], given: Mapping[str, str]
) -> str:
    """The key of the provider that a model's name begins with; else the first that is given."""
    named = next((keys for it, keys in providers.items() if model.startswith(it)), ())
    every = (key for keys in providers.values() for key in keys)
    return next((key for key in (*named, *every) if given.get(key)), "")


def find(name: str, search: str | None) -> Found | None:
    """The program behind a name, links followed, with the interpreter that its first line names."""
    at = shutil.which(name, path=search)
    if at is None:
        return None
    program = Path(at).resolve()
    interpreter = interpreter_of(program, search)
    argv = (*interpreter, str(program))
    return Found(argv, shown(Path(argv[0]), program))


def python() -> Found:
    """This interpreter, for the programs that we bring along."""
    here = Path(sys.executable)
    return Found((str(here), "-I", "-S"), shown(here))


def shown(*programs: Path) -> tuple[str, ...]:
    """The install prefixes of these files, without what every sandbox shows anyway."""
    found: dict[str, None] = {}
    for program in programs:
        for file in (program, program.resolve()):
            prefix = _prefix(file)
            if not any(prefix.is_relative_to(root) for root in SYSTEM):
                found[str(prefix)] = None
    return tuple(found)


def _prefix(file: Path) -> Path:
    """What a program was installed with: its node_modules, its `bin`'s parent, or itself alone."""
    parts = file.parts
    if "node_modules" in parts:
        return Path(*parts[: parts.index("node_modules") + 1])
    prefix = file.parent.parent
    if file.parent.name == "bin" and not Path.home().is_relative_to(prefix):
        return prefix
    return file


def interpreter_of(program: Path, search: str | None) -> tuple[str, ...]:
    """The first line of a script as arguments, `env` looked up; empty for a native program."""
    with program.open("rb") as file:
        first = file.read(SHEBANG_BYTES).split(b"\n", 1)[0]
    if not first.startswith(b"#!"):
        return ()
    words = os.fsdecode(first[2:]).split()
    if not words or Path(words[0]).name != "env":
        return tuple(words)
    words = [word for word in words[1:] if word != "-S"]
    at = shutil.which(words[0], path=search) if words else None
    return (str(Path(at).absolute()), *words[1:]) if at else ()


def guide(job: Job) -> str:
    """For a program that would not read the project's AGENTS.md by itself."""
    return f"If {job.workspace}/AGENTS.md is there, read it before anything else and follow it."


def prompt_argument(job: Job) -> str:
    """The prompt for a command line; one that is too long for it lies in the HOME."""
    if _fits(job):
        return job.prompt
    return f"Read {job.home}/{PROMPT_FILE} and do what it says."


def prompt_file(job: Job) -> dict[str, str]:
    return {} if _fits(job) else {PROMPT_FILE: job.prompt}


def _fits(job: Job) -> bool:
    return len(job.prompt.encode(errors="surrogateescape")) < ARGUMENT_BYTES


# Reading what an agent printed.


def events(output: str) -> Iterator[Event]:
    """The lines that are whole JSON objects, in order; every other line is passed over."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            yield cast("Event", event)  # what begins with a brace and is JSON is an object


def last_line(output: str) -> str:
    """The last line that is no event: where a program that dies early says why."""
    for line in reversed(output.splitlines()):
        if line.strip() and not line.startswith("{"):
            return shortened(line.strip())
    return ""


def inner(event: Event, *keys: str) -> Event:
    """The object under these keys, one below the other; empty where there is none."""
    for key in keys:
        value = event.get(key)
        event = cast("Event", value) if isinstance(value, dict) else {}
    return event


def items(event: Event, key: str) -> list[Event]:
    """The objects of the list under this key."""
    value = event.get(key)
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Event", it) for it in found if isinstance(it, dict)]


def text(event: Event, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def number(event: Event, key: str) -> float:
    value = event.get(key)
    return float(value) if isinstance(value, int | float) and value == value else 0.0  # noqa: PLR0124 - not NaN


def whole(event: Event, *keys: str) -> int:
    """The sum of these fields."""
    return int(sum(number(event, key) for key in keys))


def shortened(words: str) -> str:
    """The end of what was said, where it is long."""
    return words if len(words) <= SAID_CHARACTERS else "…" + words[-SAID_CHARACTERS + 1 :]


def unexplained(exit: Exit, output: str, *, finished: bool) -> str:
    """Why a program that said nothing of a failure ended badly; empty where it did not.

    A session that we ended, or that the machine did, is no failure of its program.
    """
    if exit.ending is not Ending.EXITED or (finished and exit.code == 0):
        return ""
    ended = "a signal ended it" if exit.code is None else f"it exited {exit.code}"
    if exit.code == 0:
        ended = "it ended without a result"
    return last_line(output) or ended


_REFUSAL = re.compile(
    r"\bstatus:? 40[13]\b|\b40[13] (?:Unauthorized|Forbidden)\b"
    r"|api key not valid|invalid (?:x-)?api[- ]key",
    re.IGNORECASE,
)


def is_refused(why: str) -> bool:
    """Whether these words of a program say that its login was not accepted."""
    return _REFUSAL.search(why) is not None


# When a usage limit ends, from the words in which programs say so.


UNKNOWN = 0.0  # limited, and nobody says until when

_EPOCH = re.compile(r"limit reached\|(\d{10})\b")
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_SPAN = re.compile(
    r"(\d+(?:\.\d+)?) ?(d|h|m|s)(?:ays?|ours?|rs?|in(?:ute)?s?|ec(?:ond)?s?)?(?![a-z])"
)
_IN = re.compile(
    r"(?:again|retry|reset|resets) (?:in|after) ((?:\d[\d.]* ?[a-z]+[ ,]*)+)", re.IGNORECASE
)
_AT = re.compile(
    r"(?:again at|resets?(?: at)?) "
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r",? (?:(?P<year>\d{4}),? )?(?:at )?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))? ?(?P<half>[ap]m)(?: \((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def limited_until(words: str, now: float) -> float:
    """The time that these words name as the end of a limit; UNKNOWN where they name none."""
    if epoch := _EPOCH.search(words):
        return float(epoch[1])
    if span := _IN.search(words):
        seconds = sum(float(n) * _UNITS[unit] for n, unit in _SPAN.findall(span[1].lower()))
        return now + seconds if seconds else UNKNOWN
    if at := _AT.search(words):
        return _moment(at, now)
    return UNKNOWN


def _moment(at: re.Match[str], now: float) -> float:
    """The next time that a clock shows this, where no date is named."""
    zone = _zone(at["zone"])
    today = datetime.fromtimestamp(now, zone) if zone else datetime.fromtimestamp(now).astimezone()
    hour = int(at["hour"]) % 12 + (12 if at["half"].lower() == "pm" else 0)
    try:
        moment = today.replace(hour=hour, minute=int(at["minute"] or 0), second=0, microsecond=0)
        if at["month"]:
            month = _MONTHS.index(at["month"].lower()) + 1
            year = int(at["year"] or today.year)
            return moment.replace(year=year, month=month, day=int(at["day"])).timestamp()
    except ValueError:
        return UNKNOWN
    return (moment if moment > today else moment + timedelta(days=1)).timestamp()


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return None
