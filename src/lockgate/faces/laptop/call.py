"""Hands a command to the server that this laptop is logged in at, and prints its answer."""

import http.client
import json
import os
import re
import shlex
import sys
from urllib.parse import urlsplit

from lockgate import __version__
from lockgate.errors import LockgateError, Refused
from lockgate.faces import client
from lockgate.faces.laptop import commands
from lockgate.faces.laptop.server import (
    LARGEST_ANSWER,
    NOTHING,
    Login,
    asked,
    broken_off,
    chosen,
    in_words,
    unknown,
)

INTERRUPTED = 130
CALL, SEAT = "/people/call", "/people/seat"
SSH_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,250}")


def forwarded(argv: list[str]) -> int | None:
    """The exit code; None where the command is carried out on this machine."""
    argv = argv or board()
    here = argv[0] in commands.HERE or (argv[0] == "mcp" and len(argv) > 1)
    if commands.asks_for_help(argv) or (here and not commands.is_far(argv)):
        return None
    try:
        login = chosen()
        if commands.is_seated(argv):
            return _sit_down(login, argv)
        if argv == ["mcp"]:
            from lockgate.faces.laptop import bridge

            return bridge.run(login)
        if argv[0] in commands.THERE:
            raise _on_the_server(login, argv)
        return _called(login, argv)
    except LockgateError as error:
        return failed(error, as_json="--json" in argv)
    except KeyboardInterrupt:
        client.say(2, b"\nthis ends the output only; what was begun goes on at the server\n")
        return INTERRUPTED


def board() -> list[str]:
    """What `lockgate` alone shows: the tasks of this clone's project, or of all."""
    return ["task", "list"] if commands.where() else ["task", "list", "--all"]


def failed(error: LockgateError, *, as_json: bool) -> int:
    told = {"what": error.what, "why": error.why, "fix": error.fix}
    if as_json:
        client.say(1, f"{json.dumps({'error': told})}\n".encode())
    client.say(2, os.fsencode(f"{error.what}: {error.why}\n  {error.fix}\n"))
    return error.exits_with


def _called(login: Login, argv: list[str]) -> int:
    sent, text = commands.with_files(argv)
    body = client.packed(("", commands.where(), ""), sent, text)
    with asked(login, CALL, body, {"Content-Type": "application/octet-stream"}) as answer:
        code = _printed(login, answer)
    if argv == ["status"]:
        _compare_versions(login, answer.headers.get("Lockgate-Version", ""))
    return code


def _printed(login: Login, answer: http.client.HTTPResponse) -> int:
    """Its exit code. What comes is printed as it comes: fields that end with NUL, each of a kind.

    Empty ones come all the time: where none does, the server is lost.
    """
    rest = b""
    try:
        while chunk := answer.read1(1 << 16):
            *fields, rest = (rest + chunk).split(b"\0")
            for field in fields:
                if field[:1] == b"x":
                    return int(field[1:])
                to = 1 if field[:1] == b"o" else 2
                if not client.say(to, field[1:]) and to == 1:
                    return 0  # as on this machine, where nobody reads the output any more
    except (OSError, http.client.HTTPException) as error:
        raise unknown(broken_off(login, error)) from error
    raise unknown("the server ended before it had answered")


def _compare_versions(login: Login, theirs: str) -> None:
    if theirs != __version__:
        why = f"{login.url} is version {theirs}, this command is {__version__}"
        client.say(2, f"note: {why}: pip install 'lockgate=={theirs}'\n".encode())


# What needs a terminal on the server's machine.


def _sit_down(login: Login, argv: list[str]) -> int:
    command = ["ssh", "-t", ssh_name(_seated(login, argv)), *_there(argv)]
    if not (os.isatty(0) and os.isatty(1)):
        why = "it needs a terminal on the server's machine, and there is none here"
        raise Refused(NOTHING, why=why, fix=f"run it in one: {shlex.join(command)}")
    client.say(2, os.fsencode(f"{shlex.join(command)}\n"))
    try:
        os.execvp("ssh", command)  # noqa: S606, S607 - the user's own ssh, an argument list
    except OSError as error:
        raise Refused(NOTHING, why=f"ssh: {error.strerror}", fix="install ssh") from error


def _seated(login: Login, argv: list[str]) -> Login:
    """Among several hosts the server says which one has the session, or the clone."""
    body = client.packed(("", commands.where(), ""), argv, b"")
    try:
        with asked(login, SEAT, body, {"Content-Type": "application/octet-stream"}) as answer:
            named = json.loads(answer.read(LARGEST_ANSWER)).get("ssh")
    except (LockgateError, OSError, http.client.HTTPException, ValueError) as error:
        why = error.why if isinstance(error, LockgateError) else in_words(login, error).why
        client.say(2, os.fsencode(f"note: which machine it is on was not asked: {why}\n"))
        return login
    return login._replace(ssh=str(named)) if named else login


def _on_the_server(login: Login, argv: list[str]) -> Refused:
    command = shlex.join(["ssh", ssh_name(login), *_there(argv)])
    why = f"{argv[0]} is about the machine of {login.url}, and is not done from elsewhere"
    here = f"about this machine: LOCKGATE_SERVER=off lockgate {shlex.join(argv)}"
    return Refused(NOTHING, why=why, fix=f"there: {command}; {here}")


def ssh_name(login: Login) -> str:
    name = login.ssh or urlsplit(login.url).hostname or ""
    if not SSH_NAME.fullmatch(name):
        why = f"{name!r} is no name for ssh"
        raise Refused(NOTHING, why=why, fix=f"lockgate login {login.url} --ssh USER@HOST")
    return name


def _there(argv: list[str]) -> list[str]:
    """As the shell of the other machine takes them."""
    return ["lockgate", *(shlex.quote(it) for it in argv)]


def main(argv: list[str]) -> None:
    """Ends the process, unless the command is carried out on this machine."""
    code = forwarded(argv)
    if code is not None:
        sys.stdout.flush()
        os._exit(code)
