"""An agent that is one file of the user's: a copy of it runs, in the sandbox only."""

import os
import secrets
import stat
from functools import partial
from hashlib import sha256
from pathlib import Path

from lockgate.adapters.harnesses import programs
from lockgate.adapters.harnesses.command import read
from lockgate.adapters.harnesses.harness import Found, Harness
from lockgate.core.model.agents import DIGEST, Job, Launch, digest_in, file_agent
from lockgate.errors import Refused

LARGEST = 64 << 20  # bytes
PLACE = ".lockgate-agent"  # the directory of the copy in the agent's HOME
ELF = b"\x7fELF"


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
        find=partial(_find, copy),
        launch=partial(_launch, file, copy),
        read=read,
        resumes=False,
    )


def _find(copy: Path, search: str | None) -> Found | None:
    """None where the copy is not there or has other bytes than when the task was created."""
    if not _intact(copy):
        return None
    words = _interpreter(copy, search)
    return Found(words, programs.shown(Path(words[0])) if words else ())


def _launch(file: str, copy: Path, found: Found, job: Job) -> Launch:
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
