"""Talks to one process of Claude Code: a program of its own, with the standard library alone.

    python -I -S claude_live.py SECONDS WORDS STOP-COMMAND... CLAUDE...

It speaks the program's control protocol. WORDS is how many words the Stop command has; that command
is run by us at the end of every turn, so that no settings file can take it away. The first prompt
comes by standard input. After a result it waits SECONDS for more on the FIFO `.lockgate-live` in
the HOME: a line is the JSON of what to say next, and `null` ends the conversation.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

Message = dict[str, object]
FIFO = ".lockgate-live"
CHUNK = 64 * 1024


@dataclass(slots=True)
class Talk:
    """One running program: where it listens, where it speaks, where more feedback comes from."""

    pid: int
    ear: int
    mouth: int
    feedback: int
    stop_command: tuple[str, ...]
    seconds: float
    over: float | None = None  # when nothing more is waited for; None while it works
    heard: bytes = b""  # the beginnings of lines that are not yet whole
    told: bytes = b""


def main(argv: Sequence[str]) -> int:
    seconds, words, rest = float(argv[0]), int(argv[1]), tuple(argv[2:])
    talk = start(rest[words:], rest[:words], seconds)
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(talk.pid, number))
    hooks = {"Stop": [{"matcher": None, "hookCallbackIds": ["stop"]}]} if words else {}
    request: Message = {"subtype": "initialize", "hooks": hooks}
    send(talk, {"type": "control_request", "request_id": "initialize", "request": request})
    say(talk, sys.stdin.read())
    converse(talk)
    code = os.waitstatus_to_exitcode(os.waitpid(talk.pid, 0)[1])
    return code if code >= 0 else 128 - code


def start(argv: tuple[str, ...], stop: tuple[str, ...], seconds: float) -> Talk:
    theirs, ear = os.pipe()
    mouth, other = os.pipe()
    ends = [(os.POSIX_SPAWN_DUP2, theirs, 0), (os.POSIX_SPAWN_DUP2, other, 1)]
    pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=ends)
    os.close(theirs)
    os.close(other)
    return Talk(pid, ear, mouth, opened(Path(os.environ["HOME"], FIFO)), stop, seconds)


def opened(fifo: Path) -> int:
    """Open for writing too, so that a writer that leaves does not end it."""
    fifo.unlink(missing_ok=True)
    os.mkfifo(fifo, 0o600)
    return os.open(fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


def converse(talk: Talk) -> None:
    """Until the program closes its output."""
    waiting = True
    while True:
        sources = [talk.mouth, talk.feedback] if waiting else [talk.mouth]
        ready, _, _ = select.select(sources, [], [], left(talk) if waiting else None)
        if talk.mouth in ready:
            data = os.read(talk.mouth, CHUNK)
            if not data:
                return
            hear(talk, data)
        elif waiting and (not ready or not listen(talk)):
            os.close(talk.ear)
            waiting = False


def left(talk: Talk) -> float | None:
    return None if talk.over is None else max(0.0, talk.over - time.monotonic())


def listen(talk: Talk) -> bool:
    """Say what came by the FIFO; False where that was to end."""
    lines, talk.told = whole_lines(talk.told + os.read(talk.feedback, CHUNK))
    for line in lines:
        try:
            words = json.loads(line)
        except ValueError:
            continue
        if words is None:
            return False
        say(talk, str(words))
    return True


def hear(talk: Talk, data: bytes) -> None:
    """Pass on what it prints, but for what is said to us alone."""
    lines, talk.heard = whole_lines(talk.heard + data)
    for line in lines:
        message = parsed(line)
        kind = message.get("type")
        if kind == "control_request":
            answer(talk, message)
        elif kind != "control_response":
            write(1, line + b"\n")
        if kind == "result":
            talk.over = time.monotonic() + talk.seconds


def whole_lines(data: bytes) -> tuple[Iterator[bytes], bytes]:
    *lines, rest = data.split(b"\n")
    return iter(lines), rest


def parsed(line: bytes) -> Message:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return cast("Message", message) if isinstance(message, dict) else {}


def answer(talk: Talk, message: Message) -> None:
    request = cast("Message", message.get("request", {}))
    response: Message = {"subtype": "error", "error": "this is not answered here"}
    if request.get("subtype") == "hook_callback":
        decided = parsed(run(talk.stop_command, json.dumps(request.get("input", {})).encode()))
        response = {"subtype": "success", "response": decided}
    response["request_id"] = message.get("request_id")
    send(talk, {"type": "control_response", "response": response})


def run(argv: tuple[str, ...], given: bytes) -> bytes:
    """What a command prints; nothing where it cannot be run or fails: the agent may then stop."""
    theirs, into = os.pipe()
    out, other = os.pipe()
    ends = [(os.POSIX_SPAWN_DUP2, theirs, 0), (os.POSIX_SPAWN_DUP2, other, 1)]
    try:
        child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=ends)
    except OSError:
        child = 0
    os.close(theirs)
    os.close(other)
    if child:
        write(into, given)
    os.close(into)
    with os.fdopen(out, "rb") as file:
        printed = file.read()
    return printed if child and os.waitpid(child, 0)[1] == 0 else b""


def say(talk: Talk, words: str) -> None:
    talk.over = None
    content = [{"type": "text", "text": words}]
    send(talk, {"type": "user", "message": {"role": "user", "content": content}})


def send(talk: Talk, message: Message) -> None:
    write(talk.ear, json.dumps(message).encode() + b"\n")


def write(to: int, data: bytes) -> None:
    """Write all of it; a reader that has gone is ignored."""
    with contextlib.suppress(BrokenPipeError):
        while data:
            data = data[os.write(to, data) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
