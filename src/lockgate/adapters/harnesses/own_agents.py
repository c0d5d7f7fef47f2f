"""Agents of the user's own: command lines of `[agents.NAME]`, or one file, of which a copy runs."""

import os
import secrets
import stat
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePath

from lockgate.adapters.harnesses import programs
from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.adapters.harnesses.programs import last_line, unexplained
from lockgate.core.config.settings import AgentSettings
from lockgate.core.model.agents import DIGEST, Exit, Job, Launch, Report, digest_in, file_agent
from lockgate.errors import Refused

LARGEST = 64 << 20  # bytes
PLACE = ".lockgate-agent"  # the directory of the copy in the agent's HOME
ELF = b"\x7fELF"


def command_harness(agent: AgentSettings) -> Harness:
    return Harness(
        install=f"install {agent.command[0]}, or correct command in [agents.{agent.name}]",
        find=partial(_find, agent.command[0]),
        launch=partial(_launch, agent),
        read=read,
        variables=agent.env,
        login=partial(_login, agent),
        resumes=bool(agent.resume),
    )


def _login(agent: AgentSettings, given: Mapping[str, str]) -> str:
    """The first of its variables whose name is that of a key or a token."""
    named = (it for it in agent.env if given.get(it) and ("KEY" in it or "TOKEN" in it))
    return next(named, "")


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


# An agent that is one file: its copy runs in the sandbox only.


def keep(file: Path, copies: Path, search: str | None) -> str:
    """Copy the file and return the name of the agent that it is."""
    content = _content(file)
    _check_start(file, content, search)
    digest = _digest(content)
    copies.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _intact(copies / digest):
        new = copies / f".{secrets.token_hex(8)}"
        new.touch(mode=0o600)
        new.write_bytes(content)
        new.rename(copies / digest)
    return file_agent(file.name, digest)


def harness_of(agent: str, copies: Path) -> Harness:
    """It gets no variable of the user's but those of the network, and is not resumed."""
    file, copy = agent.partition("@")[0], copies / (digest_in(agent) or "")
    return Harness(
        install=f"its copy is gone or damaged: create the task again with --agent ./{file}",
        find=partial(_find_copy, copy),
        launch=partial(_launch_copy, file, copy),
        read=read,
        resumes=False,
    )


def _find_copy(copy: Path, search: str | None) -> Found | None:
    """None where the copy is not there or has other bytes than when the task was created."""
    if not _intact(copy):
        return None
    words = _interpreter(copy, search)
    return Found(words, programs.shown(Path(words[0])) if words else ())


def _launch_copy(file: str, copy: Path, found: Found, job: Job) -> Launch:
    """Its one argument is the file with the prompt."""
    name, prompt = f"{PLACE}/{file}", programs.PROMPT_FILE
    return Launch(
        argv=(*found.argv, f"{job.home}/{name}", f"{job.home}/{prompt}"),
        env=job.environ,
        files={prompt: job.prompt},
        programs={name: copy.read_bytes().decode("utf-8", "surrogateescape")},
    )


def _check_start(file: Path, content: bytes, search: str | None) -> None:
    if content.startswith(ELF) or _interpreter(file, search):
        return
    first = content.split(b"\n", 1)[0][: programs.SHEBANG_BYTES].decode(errors="replace")
    why = f"no program on PATH is the one of its first line, {first!r}"
    raise Refused(
        "the task was not created",
        why=why if first.startswith("#!") else f"{file} does not begin with a #! line",
        fix="let its first line name what runs it: #!/bin/sh, or #!/usr/bin/env python3",
    )


def _interpreter(file: Path, search: str | None) -> tuple[str, ...]:
    """What the file's first line asks for; empty where that is not there.

    A file may come from a repository, and its interpreter is shown to the agent with all that it
    was installed with: so only the system's programs and those on the user's PATH count.
    """
    words = programs.interpreter_of(file, search)
    if not words or not Path(words[0]).is_file():
        return ()
    place = Path(words[0]).parent
    usual = (search or os.environ.get("PATH") or os.defpath).split(os.pathsep)
    known = any(place.is_relative_to(it) for it in programs.SYSTEM) or str(place) in usual
    return words if known else ()


def _intact(copy: Path) -> bool:
    """Whether the copy, which is named by its digest, has the bytes that it was made with."""
    try:
        return _digest(copy.read_bytes()) == copy.name
    except OSError:
        return False


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:DIGEST]


def _content(file: Path) -> bytes:
    """Of a regular file; a pipe or a device would keep us waiting."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unread(file, error.strerror or str(error)) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _unread(file, "it is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as opened:
            content = opened.read(LARGEST + 1)
    finally:
        os.close(descriptor)
    if len(content) > LARGEST:
        raise _unread(file, f"it is larger than {LARGEST >> 20} MB")
    return content


def _unread(file: Path, why: str) -> Refused:
    return Refused(
        "the task was not created",
        why=f"{file} cannot be its agent: {why}",
        fix="name a program file, or one of the agents that lockgate doctor lists",
    )
