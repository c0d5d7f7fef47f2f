"""An agent of the user's own: the command lines of `[agents.NAME]`, and no more than they say."""

from functools import partial
from pathlib import PurePath

from lockgate.adapters.harnesses import programs
from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.adapters.harnesses.output import last_line, unexplained
from lockgate.core.config.settings import AgentSettings
from lockgate.core.model.agents import Exit, Job, Launch, Report


def command_harness(agent: AgentSettings) -> Harness:
    return Harness(
        install=f"install {agent.command[0]}, or correct command in [agents.{agent.name}]",
        find=partial(_find, agent.command[0]),
        launch=partial(_launch, agent),
        read=read,
        variables=agent.env,
        resumes=bool(agent.resume),
    )


def _find(name: str, search: str | None) -> Found | None:
    """A relative path lies in the workspace, which is where the program is started."""
    if "/" in name and not PurePath(name).is_absolute():
        return Found((name,), ())
    return programs.find(name, search)


def _launch(agent: AgentSettings, found: Found, job: Job) -> Launch:
    """`{session}` is the session in which this agent's work began, in its resumptions too."""
    resumed = bool(job.native and agent.resume)
    begin = job.native if resumed else job.session
    line = agent.resume if resumed else agent.command
    fields = {
        "{prompt_file}": f"{job.home}/{programs.PROMPT_FILE}",
        "{prompt}": job.prompt,
        "{session}": begin,
    }
    first = found.argv if line[0] == agent.command[0] else (line[0],)
    return Launch(
        argv=(*first, *(_filled(word, fields) for word in line[1:])),
        env=job.environ,
        files={programs.PROMPT_FILE: job.prompt},
        native=begin if agent.resume else "",
    )


def _filled(word: str, fields: dict[str, str]) -> str:
    """Each field once, from left to right: what a prompt says in braces stays as it is."""
    for name, value in fields.items():
        before, found, after = word.partition(name)
        if found:
            return _filled(before, fields) + value + _filled(after, fields)
    return word


def read(output: str, exit: Exit, now: float) -> Report:
    """Its exit is all that we know of it, and its last line is for people."""
    return Report(
        failure=unexplained(exit, output, finished=exit.code == 0),
        said=last_line(output),
    )
