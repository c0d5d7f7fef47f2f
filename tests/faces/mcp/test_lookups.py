"""Resources and prompts: what an assistant reads, what it is told of, and what it may not see."""

import asyncio
import json
import queue
from collections.abc import Iterator
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.task import Role, Status
from lockgate.faces.mcp.answers import MOST
from lockgate.faces.mcp.news import News, changed
from lockgate.faces.mcp.prompts import PROMPTS
from tests.faces.cli.test_other_host import H2, worked_on
from tests.faces.mcp.room import BOTH, NEW, OLD, Room, text_of
from tests.faces.mcp.test_yes import waiting
from tests.faces.shell import Shell

BOARD = "lockgate://board"


class Told:
    """A feed that a test tells what happened."""

    def __init__(self) -> None:
        self.items = queue.Queue[dict[str, Any] | None]()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from iter(self.items.get, None)

    def close(self) -> None:
        self.items.put(None)

    def event(self, task: str) -> None:
        row = {"project": "p1", "project_name": "shop"}
        self.items.put({"event": {"seq": 1, "task": task}, "row": row, "need": None})


def read(client: Client, uri: str) -> Any:
    async def text() -> str:
        found = (await client.read_resource(uri)).contents[0]
        assert isinstance(found, types.TextResourceContents)
        return found.text

    return text()


@pytest.mark.parametrize("mode", BOTH)
def test_what_is_listed_can_be_read(shell, mode) -> None:
    id = waiting(shell, "a.py")

    async def looks(client: Client) -> dict[str, str]:
        listed = [it.uri for it in (await client.list_resources()).resources]
        templates = (await client.list_resource_templates()).resource_templates
        of_task = [it.uri_template.format(id=id, project="repo") for it in templates]
        wanted = [it for it in (*listed, *of_task) if not it.endswith("/output")]
        return {uri: await read(client, uri) for uri in wanted}

    found = Room(shell, mode=mode).with_client(looks)

    assert json.loads(found[BOARD])["rows"][0]["id"] == id
    assert json.loads(found["lockgate://inbox"])["needs"][0]["task"] == id
    assert json.loads(found[f"lockgate://task/{id}"])["row"]["id"] == id
    assert "+x" in found[f"lockgate://task/{id}/diff"]
    assert "DONE: the redirect" in found[f"lockgate://task/{id}/taskmd"]
    assert json.loads(found["lockgate://train/repo"])["target"] == "main"
    assert all(len(it) <= MOST + 100 for it in found.values())


@pytest.mark.parametrize("mode", BOTH)
def test_what_agents_wrote_is_named_so(shell, mode) -> None:
    id = waiting(shell, "a.py")

    async def looks(client: Client) -> tuple[Any, list[types.ResourceTemplate]]:
        diff = await client.read_resource(f"lockgate://task/{id}/diff")
        return diff.contents[0], (await client.list_resource_templates()).resource_templates

    diff, templates = Room(shell, mode=mode).with_client(looks)

    assert diff.meta == {"lockgate/untrusted": True}
    untrusted = {it.name for it in templates if "untrusted" in (it.description or "")}
    assert untrusted == {"task/diff", "task/taskmd", "task/output"}


@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.parametrize(
    "uri",
    [
        *("lockgate://task/no-such", "lockgate://task/ID/secrets", "lockgate://nothing"),
        *("file:///etc/passwd", "lockgate://train/nowhere", "lockgate://task/ID/output"),
        *("lockgate://task/../board", "lockgate://task//diff"),
    ],
)
def test_what_cannot_be_read_is_refused_in_three_parts(shell, mode, uri) -> None:
    id = shell.create()

    async def looks(client: Client) -> Any:
        with pytest.raises(MCPError) as error:
            await client.read_resource(uri.replace("ID", id))
        return error.value.data

    told = Room(shell, mode=mode).with_client(looks)

    assert set(told) == {"what", "why", "fix"}


@pytest.mark.parametrize("part", ["diff", "output"])
def test_what_only_another_host_has_is_refused_with_its_name(shell, part) -> None:
    id = worked_on(shell, H2)

    async def looks(client: Client) -> Any:
        with pytest.raises(MCPError) as error:
            await client.read_resource(f"lockgate://task/{id}/{part}")
        return error.value.data

    told = Room(shell, mode=NEW).with_client(looks)

    assert told["why"] == f"the files of task {id} are on host h2"
    assert "ssh -t lockgate@h2.test lockgate" in told["fix"]


@pytest.mark.parametrize("mode", BOTH)
def test_a_session_has_neither_resources_nor_prompts(shell, mode) -> None:
    id = shell.create()
    shell.bring(id, Status.WORKING)
    room = Room(shell, token=shell.begin(id, Role.WORKER), mode=mode)

    async def looks(client: Client) -> list[int]:
        codes = []
        for ask in (client.list_resources, client.list_prompts):
            with pytest.raises(MCPError) as error:
                await ask()
            codes.append(error.value.code)
        with pytest.raises(MCPError) as error:
            await client.read_resource(BOARD)
        return [*codes, error.value.code]

    assert room.with_client(looks) == [types.METHOD_NOT_FOUND] * 3


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_a_subscriber_hears_of_its_resource_alone_by_the_old_protocol(shell) -> None:
    told, heard = Told(), queue.Queue[str]()

    async def hears(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.put(str(message.params.uri))

    room = Room(shell, mode=OLD, news=News(lambda: told), hears=hears)

    async def listens(client: Client) -> list[str]:
        await client.session.subscribe_resource("lockgate://task/one-1")
        await client.session.subscribe_resource("lockgate://inbox")
        await client.session.unsubscribe_resource("lockgate://inbox")
        told.event("two-2")
        told.event("one-1")
        first = await asyncio.to_thread(heard.get, timeout=30)
        told.close()
        return [first]

    assert room.with_client(listens) == ["lockgate://task/one-1"]
    assert heard.empty()


def test_a_subscriber_hears_of_its_resource_alone_by_the_new_protocol(shell) -> None:
    told = Told()
    room = Room(shell, mode=NEW, news=News(lambda: told))

    async def listens(client: Client) -> list[str]:
        async with client.listen(resource_subscriptions=["lockgate://train/shop"]) as events:
            told.event("two-2")
            async for event in events:
                told.close()
                return [getattr(event, "uri", "")]
        return []

    assert room.with_client(listens) == ["lockgate://train/shop"]


def test_events_are_waited_for(shell) -> None:
    told = Told()
    room = Room(shell, news=News(lambda: told))
    id = shell.create()

    async def waits(client: Client) -> Any:
        first = (await client.call_tool("events", {"task_id": id})).structured_content
        given = {"task_id": id, "since": first["next"], "wait_seconds": 50}
        waiting = asyncio.create_task(client.call_tool("events", given))
        told.event("another")  # is not what is waited for
        await asyncio.sleep(0.05)
        await asyncio.to_thread(shell.program, "task", "cancel", id)
        told.event(id)
        found = (await waiting).structured_content
        told.close()
        given["wait_seconds"] = 0.01
        none = (
            await client.call_tool("events", given | {"since": found["next"]})
        ).structured_content
        return found["events"], none

    events, none = room.with_client(waits)

    assert events[0]["type"] == "status.changed"
    assert none["events"] == []


def test_all_needs_are_shown_however_many_they_are(shell) -> None:
    room = Room(shell)
    for part in ("a", "b"):
        tasks = [{"name": f"{part}{n}", "summary": "z" * 150, "start": False} for n in range(30)]
        room.did("create_tasks", tasks=tasks)
    app = shell.app()
    for row in app.boards.board(limit=100).rows:
        app.signals.move(row.id, Move(Status.CLARIFICATION), app.caller)
    app.store.close()

    async def inbox(client: Client) -> Any:
        return json.loads(await read(client, "lockgate://inbox"))

    board, seen = room.call("list_tasks", needs=True), room.with_client(inbox)

    assert len({it["task"] for it in board.structured_content["needs"]}) == 60
    assert len(text_of(board)) <= MOST
    assert len({it["task"] for it in seen["needs"]}) == 60


def test_a_gap_in_the_feed_may_have_changed_everything() -> None:
    assert list(changed({"resync": 7})) == [BOARD, "lockgate://inbox"]
    assert list(changed({"beat": 1.0})) == []


@pytest.mark.parametrize("mode", BOTH)
def test_prompts_name_tools_that_are_there(shell: Shell, mode: str) -> None:
    given = {"task_id": "fix-1", "goal": "Make\nit fast"}

    async def picks(client: Client) -> tuple[dict[str, str], Any]:
        found = {}
        for it in (await client.list_prompts()).prompts:
            arguments = {arg.name: given[arg.name] for arg in it.arguments or []}
            message = (await client.get_prompt(it.name, arguments)).messages[0]
            assert isinstance(message.content, types.TextContent)
            found[it.name] = message.content.text
        with pytest.raises(MCPError) as error:
            await client.get_prompt("unstick", {})
        return found, error.value.data

    found, missing = Room(shell, mode=mode).with_client(picks)

    assert (
        set(found) == set(PROMPTS) == {*("triage", "review_change", "unstick", "split_into_tasks")}
    )
    assert "fix-1" in found["review_change"]
    assert "Make it fast" in found["split_into_tasks"]
    assert "create_tasks" in found["split_into_tasks"]
    assert all("You are not the human" in it for it in found.values())
    assert missing["why"] == "task_id is missing"
