"""The agent that plays a script: no model, no key, the same every time. See docs/scripted.md."""

from pathlib import Path

from lockgate.adapters.harnesses import programs
from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.adapters.harnesses.programs import events, number, shortened, text, unexplained, whole
from lockgate.core.model.agents import Exit, Job, Launch, Report, Usage
from lockgate.errors import BadConfig

PLAYER = Path(__file__).with_name("scripted_player.py")
SCRIPT = "LOCKGATE_SCRIPT"  # a script for every session, instead of the one in the repository
COPY = ".lockgate-script"  # its name in the HOME, before the script's own suffix


def find(search: str | None) -> Found:
    python = programs.python()
    return Found((*python.argv, str(PLAYER)), (*python.paths, str(PLAYER)))


def launch(found: Found, job: Job) -> Launch:
    at = job.environ.get(SCRIPT)
    copy = f"{COPY}{Path(at).suffix}" if at else ""
    script = f"{job.home}/{copy}" if copy else ""
    about = (job.role.value, job.task, job.session, job.native, script)
    return Launch(
        argv=(*found.argv, *about, *job.stop_command),
        stdin=job.prompt,
        files={copy: _read(at)} if at else {},
    )


def read(output: str, exit: Exit, now: float) -> Report:
    report = Report()
    seen = {text(event, "type"): event for event in events(output)}
    usage, limit = seen.get("usage", {}), seen.get("limit")
    failure = text(seen.get("failure", {}), "text")
    finished = "end" in seen
    return Report(
        native=text(seen.get("session", {}), "id"),
        usage=Usage(number(usage, "usd"), whole(usage, "tokens")),
        exhausted="exhausted" in seen,
        limited_until=number(limit, "until") if limit is not None else report.limited_until,
        refused="refused" in seen,
        failure=text(seen.get("refused", {}), "text")
        or failure
        or unexplained(exit, output, finished=finished),
        said=shortened(text(seen.get("say", {}), "text")),
    )


def _read(at: str) -> str:
    try:
        return Path(at).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(
            "the scripted agent was not started",
            why=f"the script {at} cannot be read: {error}",
            fix=f"let {SCRIPT} name a file that is there, or unset it",
        ) from error


HARNESS = Harness(
    install="it comes with Lockgate",
    find=find,
    launch=launch,
    read=read,
    variables=(SCRIPT,),
)
