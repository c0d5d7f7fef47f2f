"""Claude Code by its control protocol: we answer its Stop hook, and feedback needs no restart.

`claude_live.py` is what runs in the sandbox between the runner and the program.
"""

from pathlib import Path

from msgspec.structs import replace

from lockgate.adapters.harnesses import claude, programs
from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.core.model.agents import Job, Launch

DRIVER = Path(__file__).with_name("claude_live.py")
SECONDS = (
    "LOCKGATE_LIVE_SECONDS"  # how long it waits for feedback after a result; not at all if unset
)


def find(search: str | None) -> Found | None:
    found = claude.HARNESS.find(search)
    if found is None:
        return None
    python = programs.python()
    return Found(found.argv, (*found.paths, *python.paths, str(DRIVER)))


def launch(found: Found, job: Job) -> Launch:
    """A person who attaches talks to the program itself."""
    line = claude.launch(found, job if job.interactive else replace(job, stop_command=()))
    if job.interactive:
        return line
    stop = job.stop_command
    driver = (*programs.python().argv, str(DRIVER))
    about = (job.environ.get(SECONDS, "0"), str(len(stop)), *stop)
    return replace(line, argv=(*driver, *about, *line.argv, "--input-format", "stream-json"))


HARNESS = Harness(
    install=claude.HARNESS.install,
    find=find,
    launch=launch,
    read=claude.read,
    variables=(*claude.VARIABLES, SECONDS),
    keys=claude.KEYS,
)
