"""`lockgate mcp` as a client starts it: over its streams, with a real orchestrator behind it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters

import lockgate
from lockgate.adapters.sessions.runner.command_socket import Door
from lockgate.adapters.sessions.runner.relay import Relay
from lockgate.bootstrap import orchestrator_pid
from lockgate.bootstrap.assistants import mcp_child, serve_mcp
from lockgate.core.model.task import Role, Status
from lockgate.faces.pipe import LOST
from lockgate.ports import Call
from tests.faces.cli.test_agents import Heard
from tests.faces.mcp.room import ASSISTANT, BOTH, DECLINED, NEW, OLD, YES, parts
from tests.faces.mcp.test_yes import grant, waiting
from tests.faces.shell import Shell

pytestmark = pytest.mark.measured

T = TypeVar("T")
PROGRAM = [sys.executable, "-m", "lockgate", "mcp"]
HUGE = 10_000_000


def over_stdio(shell: Shell, mode: str, does: Callable[[Client], Awaitable[T]], **more: Any) -> T:
    async def run() -> T:
        program = StdioServerParameters(
            command=PROGRAM[0], args=PROGRAM[1:], env=shell.environment(), cwd=str(shell.repo)
        )
        async with Client(program, mode=mode, **more) as client:
            return await does(client)

    return asyncio.run(run())


STOPS: dict[str, Callable[[Shell], object]] = {
    OLD: lambda shell: shell.program("down"),
    NEW: lambda shell: os.kill(orchestrator_pid(shell.home) or 0, signal.SIGKILL),
}


async def resumed(client: Client, id: str) -> Any:
    """Asked again where the server that is about to end had got the call: the client is told so."""
    found = await client.call_tool("resume_task", {"task_id": id})
    if not found.is_error:
        return found
    assert parts(found) == LOST
    return await client.call_tool("resume_task", {"task_id": id})


@pytest.mark.req("R192")
def test_a_client_goes_on_while_orchestrators_come_and_go(orchestrated) -> None:
    """None runs at first; the first is stopped under its client, the next one killed."""
    shell = orchestrated
    ids = [shell.create(it, "--no-start") for it in ("fix-login", "other")]
    shell.alone = True  # the test itself starts none
    for id in ids:
        shell.bring(id, Status.PAUSED_FOR_INTERVENTION)
    shell.alone = False
    pids: list[int | None] = []

    def going_on(mode: str, id: str) -> Callable[[Client], Awaitable[list[Any]]]:
        async def works(client: Client) -> list[Any]:
            found = [await client.list_tools(), await client.call_tool("list_tasks", {})]
            pids.append(orchestrator_pid(shell.home))
            await asyncio.to_thread(STOPS[mode], shell)
            found.append(await resumed(client, id))
            while orchestrator_pid(shell.home) in {None, pids[-1]}:  # what was served meanwhile
                assert not (await client.call_tool("list_tasks", {})).is_error
            pids.append(orchestrator_pid(shell.home))
            found.append(await client.call_tool("create_task", {"summary": "x" * HUGE}))
            return found

        return works

    for mode, id in zip(BOTH, ids, strict=True):
        tools, board, pending, huge = over_stdio(shell, mode, going_on(mode, id))

        assert len(tools.tools) == 12
        assert {it["id"] for it in board.structured_content["rows"]} == set(ids)
        assert pending.structured_content["status"] == "pending", pending
        assert parts(huge)["what"] == "create_task was not called"
    assert len(set(pids)) == 3  # the second client found the one that the first had started


def test_two_clients_a_broken_message_and_one_that_leaves_in_the_middle(orchestrated) -> None:
    shell = orchestrated
    shell.create("fix-login", "--no-start")
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    call = {"name": "events", "arguments": {"wait_seconds": 50, "since": 10_000}}
    waits = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    broken = b"{nonsense\n[1]\n\n"

    with started(shell) as first, started(shell) as second:
        answer = asked(first, request)
        other = asked(second, request | {"params": HELLO | {"protocolVersion": "1999-01-01"}})
        say(first, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert first.stdin
        first.stdin.write(broken)
        complaints = [asked(first), asked(first)]
        say(first, waits)
        first.kill()  # in the middle of a call
        say(second, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = asked(second, {"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
        out, _ = second.communicate(timeout=60)

    assert answer["result"]["protocolVersion"] == "2025-11-25"
    assert other["result"]["protocolVersion"] == "2025-11-25"  # the newest that it could shake on
    assert [it["error"]["code"] for it in complaints] == [-32700, -32700]
    assert len(listed["result"]["tools"]) == 12
    assert out == b""
    assert second.returncode == 0


@pytest.mark.parametrize("mode", [pytest.param(BOTH[0], marks=pytest.mark.slow), *BOTH[1:]])
def test_a_form_goes_to_the_human_and_back_through_the_pipe(orchestrated, mode) -> None:
    """Absent: refused, with the command for a human. Declined: nothing. Accepted: it counts."""
    shell = orchestrated
    shell.alone = True  # the test itself starts none
    id = waiting(shell, "a.py")
    grant(shell)
    shell.alone = False
    patch, shown = shell.facts(id)["patch"], list[str]()

    def asks(says: types.ElicitResult | None) -> Any:
        async def approves(client: Client) -> Any:
            return await client.call_tool("approve", {"task_id": id, "patch": patch})

        async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
            shown.append(params.message)
            assert says is not None
            return says

        me = types.Implementation(name=ASSISTANT, version="1")
        form = None if says is None else answer
        return over_stdio(shell, mode, approves, client_info=me, elicitation_callback=form)

    absent, declined = parts(asks(None)), parts(asks(DECLINED))
    before = shell.facts(id)["approvals"]
    accepted = asks(YES)

    assert "cannot show a form" in absent["why"]
    assert f"lockgate approve {id}" in absent["fix"]
    assert declined["why"] == "the human did not say yes to it"
    assert (before, accepted.is_error) == ([], False)
    [yes] = shell.facts(id)["approvals"]
    assert (yes["patch"], yes["how"]) == (patch, "asked by form")
    assert yes["by"].endswith(f"via {ASSISTANT}")
    assert [patch[:12] in it and "a.py" in it for it in shown] == [True, True]


HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "a client", "version": "1"},
}


def started(shell: Shell) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        PROGRAM,
        cwd=shell.repo,
        env=shell.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )


def say(program: "subprocess.Popen[bytes]", message: dict[str, Any]) -> None:
    assert program.stdin
    program.stdin.write(json.dumps(message).encode() + b"\n")


def asked(program: "subprocess.Popen[bytes]", message: dict[str, Any] | None = None) -> Any:
    if message:
        say(program, message)
    assert program.stdout
    return json.loads(program.stdout.readline())


def test_the_pipe_loads_the_standard_library_only() -> None:
    """As a session starts it, without the packages of the site."""
    root = str(Path(lockgate.__file__).parents[1])
    script = (
        f"import sys; sys.path.append({root!r}); from lockgate.faces import pipe; "
        "print(*sorted(it for it in sys.modules if not it.startswith('lockgate')))"
    )

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, check=True, text=True
    )

    loaded = {it.partition(".")[0] for it in done.stdout.split()}
    assert loaded - {"__main__"} <= sys.stdlib_module_names
    assert not {"asyncio", "pathlib", "socket", "subprocess", "threading"} & loaded


def test_where_none_may_be_started_the_client_is_told(shell) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}

    answer = shell.program("mcp", stdin=json.dumps(request).encode() + b"\n")

    assert answer.code == 1
    assert "LOCKGATE_NO_ORCHESTRATOR forbids one" in answer.err


def test_a_session_without_an_orchestrator_has_a_server_of_its_own(shell, tmp_path) -> None:
    """As the runner of a session starts one: its socket, and the session's token."""
    id = shell.create()
    shell.bring(id, Status.WORKING)
    token = shell.begin(id, Role.WORKER)
    relay = Relay(home=str(shell.home), token=token, python=sys.executable)
    door = Door(str(tmp_path / "socket"), relay.answer)
    door.serve()
    environment = shell.environment(LOCKGATE_SOCKET=str(tmp_path / "socket"))
    program = StdioServerParameters(command=PROGRAM[0], args=PROGRAM[1:], env=environment)

    async def works() -> tuple[list[str], Any]:
        async with Client(program, mode=OLD) as client:
            tools = await client.list_tools()
            mine = await client.call_tool("get_my_task", {})
            return [it.name for it in tools.tools], mine.structured_content

    names, mine = asyncio.run(works())
    door.close()

    assert "complete" in names
    assert "approve" not in names
    assert mine["id"] == id


def test_the_extra_that_is_missing_is_named(tmp_path: Path) -> None:
    line = Heard()
    call = Call(
        argv=("mcp",), token="", directory=tmp_path, stdin="", path="", lively=False, line=line
    )

    serve_mcp(mcp_child(tmp_path), call, there=lambda: False)

    assert line.code == 1
    assert "pip install 'lockgate[mcp]'" in line.said["err"]
