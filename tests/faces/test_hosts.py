"""The hosts of a fleet in `status`, on the boards and at a task; without one, nothing of them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.store.hosts import SqlHosts
from lockgate.adapters.store.lanes import SqlLanes
from lockgate.bootstrap import App
from lockgate.core.fleet import FleetSeen, HostSeen, JobSeen
from lockgate.core.hosts import Host, HostState
from lockgate.core.jobs import Evaluate, Lead
from lockgate.core.lifecycle.records import placed
from lockgate.core.model.people import Right
from lockgate.core.model.task import ProjectId, Status, TaskId
from lockgate.faces.tui.figures import host_lines
from lockgate.faces.tui.preview import row_lines
from lockgate.faces.tui.window import row_of
from lockgate.faces.words.fleet import fleet_lines, fleet_text, is_whole
from tests.faces.shell import Shell
from tests.faces.tui.driving import Driven, drive
from tests.faces.web.home import a_home
from tests.faces.web.serving import Board, serving
from tests.given import a_board, a_task

FAR = 4102444800.0  # so that no host is silent
H1 = Host(name="h1", roles=("hands", "lead"), slots=4, judges=2, seen=FAR)
H2 = replace(H1, name="h2", state=HostState.DRAINING, why="its disk was full 3 times")
SAID = "2 hosts, h1 leads, 1 job cannot go on"
LINES = (
    "h1: 0 of 4 agents, 0 of 2 gates",
    "h2: 0 of 4 agents, 0 of 2 gates, draining: its disk was full 3 times",
    "judge t: waits: no host has gpu",
)


def with_fleet(it: App) -> None:
    """One host leads, one is drained, and a job waits for a label that neither has."""
    hosts, lanes = SqlHosts(it.store.database), SqlLanes(it.store.database)
    for host in (H1, H2):
        hosts.put(host)
    hosts.mark("h2", HostState.DRAINING, H2.why)
    lanes.ask(Lead(), "lead", 1.0)
    assert lanes.claim("lead", "h1", "a token", 1.0)
    lanes.ask(Evaluate(TaskId("t"), ProjectId("p"), "t:1:0"), "gpu", 1.0)


def test_status_shows_hosts_who_leads_and_what_waits_for_one(shell: Shell) -> None:
    alone, facts = shell.did("status"), json.loads(shell.did("status", "--json"))
    app = shell.app()
    with_fleet(app)
    app.close()

    said, told = shell.did("status"), json.loads(shell.did("status", "--json"))

    assert "fleet:" not in alone
    assert "fleet" not in facts
    assert f"fleet: {SAID}" in said
    assert all(f"  {it}" in said for it in LINES), said
    assert told["fleet"]["leader"] == "h1"
    assert [it["host"]["name"] for it in told["fleet"]["hosts"]] == ["h1", "h2"]


def test_a_task_says_on_which_host_its_clone_is(shell: Shell) -> None:
    id = shell.create()
    before = shell.did("task", "show", id)
    app = shell.app()
    app.coordinator.turn(id, lambda seen: placed(seen.task, "h2", seen.now), what="it stays")
    app.close()

    assert "host:" not in before
    assert "h2" in next(
        line for line in shell.did("task", "show", id).splitlines() if line.startswith("host:")
    )
    [row] = json.loads(shell.did("task", "list", "--json"))["rows"]
    assert row["host"] == "h2"


def test_a_preview_names_the_host() -> None:
    [row] = a_board([a_task(Status.WORKING, host="h2")]).rows

    told = ["".join(text for text, _ in line) for line in row_lines(row_of(row.facts()), 80, 0.0)]

    assert "Host     h2" in told


@pytest.mark.parametrize(
    ("leader", "silent", "whole"), [("h1", 0.0, True), ("", 0.0, False), ("h1", 999.0, False)]
)
def test_a_fleet_is_whole_where_somebody_leads_and_each_host_is_heard_of(
    leader, silent, whole
) -> None:
    host = HostSeen(host=H1, agents=1, gates=0, leads=True, silent=silent)
    rests = JobSeen(lane="train", needs="any", host="", since=1.0, why="")
    seen = FleetSeen(leader=leader, epoch=1, hosts=(host,), jobs=(rests,))

    assert is_whole(seen) == whole
    assert fleet_text(seen) == f"1 host, {leader or 'nobody'} leads"
    state = ", silent" if silent else ""
    assert list(fleet_lines(seen)) == [f"h1: 1 of 4 agents, 0 of 2 gates{state}"]
    [title, *_] = host_lines(seen, 80)
    assert title[0][1] == ("head" if whole else "bad")


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    home = a_home(tmp_path)
    with serving(home) as found:
        yield found
    home.app.close()


def test_the_web_board_shows_them_to_who_may_only_look(board: Board) -> None:
    assert 'id="hosts"' not in board.get("/").text
    with_fleet(board.home.app)
    board.home.app.members.add("eve", Right.LOOK, None, board.home.app.caller)

    for person in ("", "eve"):
        board.log_in(person)
        page = board.get("/").text
        assert f'<summary class="soft">{SAID}</summary>' in page
        assert all(f"<li>{it}</li>" in page for it in LINES)


def test_the_board_in_the_terminal_counts_them_and_lists_them(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKGATE_NO_ORCHESTRATOR", "1")
    app = shell.app()
    with_fleet(app)

    async def story(board: Driven) -> None:
        await board.sees("hosts 2")
        await board.press("4")
        await board.sees(SAID, *LINES)

    drive(app, story, where=shell.repo, size=(100, 30))
    app.close()
