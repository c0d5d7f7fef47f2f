"""What each part sees and may call: schemas, hints, refusals, and the one list of commands."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # has none

from lockgate.adapters.sessions.runner.relay import ALLOWED
from lockgate.core.lifecycle.plans import MOST as MOST_TASKS
from lockgate.core.model.task import Role, Status, TaskId
from lockgate.faces.mcp.answers import LARGEST, MOST
from lockgate.faces.mcp.calls import Part
from lockgate.faces.mcp.server import TOOLS
from lockgate.faces.pipe import READING
from tests.faces.mcp.room import BOTH, Room, text_of
from tests.faces.shell import Shell
from tests.faces.test_hosts import with_fleet

OPERATORS = {
    *("list_tasks", "get_task", "why", "list_findings", "events"),
    *("create_task", "create_tasks", "resume_task", "cancel_task"),
    *("approve", "reject", "queue"),
}
WORKERS = {"get_my_task", "update_status", "complete", "run_step", "checkpoint", "ask_human"}
REVIEWERS = {"get_my_task", "update_status", "submit_review"}
ID = {"task_id": "ID"}
GIVEN: dict[str, Any] = {
    "create_task": {"summary": "Do it"},
    "create_tasks": {"tasks": [{"name": "one", "summary": "Do it"}]},
    "approve": {"task_id": "ID", "patch": "0" * 12},
    "reject": {"task_id": "ID", "patch": "0" * 12, "message": "No."},
    "update_status": {"status": "working"},
    "submit_review": {"verdict": "PASS"},
    "ask_human": {"questions": ["Which one?"]},
    **dict.fromkeys(("get_task", "why", "list_findings", "resume_task", "cancel_task"), ID),
}


@pytest.fixture
def sessions(shell: Shell) -> tuple[Shell, TaskId, dict[Part, str]]:
    """A task in review with its reviewer, another one with its worker; their tokens."""
    judged, worked = shell.create("one"), shell.create("two")
    shell.bring(judged, Status.AGENT_REVIEW)
    shell.bring(worked, Status.WORKING)
    reviewer = shell.begin(judged, Role.REVIEWER)
    worker = shell.begin(worked, Role.WORKER)
    return shell, worked, {Part.OPERATOR: "", Part.WORKER: worker, Part.REVIEWER: reviewer}


def given(name: str, id: str) -> dict[str, Any]:
    found: dict[str, Any] = GIVEN.get(name, {})
    return {key: id if value == "ID" else value for key, value in found.items()}


@pytest.mark.parametrize("mode", BOTH)
def test_each_part_is_shown_what_it_may_call_and_the_rest_is_refused(sessions, mode) -> None:
    shell, id, tokens = sessions
    wanted = {Part.OPERATOR: OPERATORS, Part.WORKER: WORKERS, Part.REVIEWER: REVIEWERS}
    seen, refused = {}, {}

    for part, token in tokens.items():
        room = Room(shell, token=token, mode=mode)
        seen[part] = set(room.tools())
        others = [it.name for it in TOOLS if it.name not in wanted[part]]
        before = shell.rows()
        results = room.calls(*((name, given(name, id)) for name in others))
        refused[part] = [it.structured_content["why"] for it in results if it.is_error]
        assert len(refused[part]) == len(others)
        assert shell.rows() == before

    assert seen == wanted
    for told in refused.values():
        assert all("no tool that you may call has this name" in it for it in told)


def test_a_session_may_call_no_tool_whose_command_it_may_not_run() -> None:
    agents = [it for it in TOOLS if Part.OPERATOR not in it.parts]
    reached = {
        allowed for it in agents for allowed in ALLOWED if it.command[: len(allowed)] == allowed
    }

    strangers = [it.name for it in agents if not any(it.command[: len(a)] == a for a in ALLOWED)]

    assert strangers == []
    assert {("mcp",), ("task", "why")} == set(ALLOWED) - reached  # get_my_task says why too


def test_what_only_reads_says_so_and_is_what_a_pipe_may_ask_again() -> None:
    assert {it.name for it in TOOLS if it.reads} == set(READING)


@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.unmeasured
def test_every_tool_has_schemas_that_hold_and_hints(sessions, mode) -> None:
    shell, _, tokens = sessions
    shown: dict[str, Any] = {}
    for token in tokens.values():
        shown |= Room(shell, token=token, mode=mode).tools()

    for tool in TOOLS:
        it = shown[tool.name]
        Draft202012Validator.check_schema(it.input_schema)
        Draft202012Validator.check_schema(it.output_schema)
        assert it.input_schema["type"] == it.output_schema["type"] == "object"
        assert it.input_schema["additionalProperties"] is False
        assert it.annotations.read_only_hint is tool.reads
        assert it.annotations.destructive_hint is (tool.name in {"cancel_task", "queue"})
        assert len(it.description) < 300
    assert set(shown) == {it.name for it in TOOLS}


BAD: list[tuple[str, Any, str]] = [
    ("nosuch", {}, "no tool that you may call has this name"),
    ("list_task", {}, "Did you mean 'list_tasks'"),
    ("get_task", {}, "task_id: Field required"),
    ("get_task", {"task_id": 7}, "task_id: Input should be a valid string"),
    ("get_task", {"task_id": ["a"]}, "task_id: Input should be a valid string"),
    ("get_task", {"task_id": "x", "more": 1}, "more: Extra inputs are not permitted"),
    ("get_task", {"task_id": "no-such-task"}, "no task's id starts with 'no-such-task'"),
    ("get_task", {"task_id": ""}, "at least 1 character"),
    ("list_tasks", {"limit": 0}, "limit: Input should be greater than or equal to 1"),
    ("list_tasks", {"limit": 201}, "limit: Input should be less than or equal to 200"),
    ("list_tasks", {"limit": "5"}, "limit: Input should be a valid integer"),
    ("list_tasks", {"status": ["nowhere"]}, "status.0: Input should be 'pending'"),
    ("list_tasks", {"project": "/nowhere"}, "none is called '/nowhere'"),
    ("list_tasks", {"after": "x"}, "'x' is no place in it"),
    ("events", {"wait_seconds": 51}, "less than or equal to 50"),
    ("events", {"since": -1}, "greater than or equal to 0"),
    ("events", {"since": 2**70}, "since: Input should be"),
    ("create_task", {"summary": "x" * 201}, "at most 200 characters"),
    ("create_task", {"summary": "two\nlines"}, "line breaks"),
    ("create_task", {"summary": "x", "agent": "nobody"}, "no agent is called 'nobody'"),
    ("create_task", {"summary": "x", "priority": 9}, "less than or equal to 5"),
    ("create_task", {"summary": "x", "depends_on": ["gone"]}, "no task's id starts with 'gone'"),
    ("create_task", {"summary": "x", "branch": "main"}, "changes land on main"),
    ("approve", {"task_id": "x", "patch": "short"}, "at least 12 characters"),
    ("queue", {"action": "hold"}, "task_id and message must be given"),
    ("queue", {"action": "approve", "task_id": "x"}, "patch must be given"),
    ("queue", {"action": "land"}, "action: Input should be 'list', 'approve', 'hold' or 'drop'"),
    ("create_task", {"summary": "x", "context": "x" * (LARGEST + 1)}, "its arguments have more"),
    ("create_task", {"summary": "\x1b]52;c;x\x07"}, "line breaks or control characters"),
]


@pytest.mark.parametrize("mode", BOTH)
def test_bad_input_is_refused_in_three_parts_and_changes_nothing(shell, mode) -> None:
    shell.create()
    before = shell.rows()

    results = Room(shell, mode=mode).calls(*((name, given) for name, given, _ in BAD))

    for (name, given, why), result in zip(BAD, results, strict=True):
        told = result.structured_content
        assert result.is_error, (name, given)
        assert set(told) == {"what", "why", "fix"}, told
        assert why in told["why"], (name, told)
        assert "\x1b" not in json.dumps(told, ensure_ascii=False)
    assert shell.rows() == before


@pytest.mark.parametrize("mode", BOTH)
def test_a_token_of_nobody_sees_no_tool_and_every_call_is_refused(shell, mode) -> None:
    id = shell.create()
    before = shell.rows()
    room = Room(shell, token="stolen", mode=mode)  # noqa: S106

    tools = room.tools()
    results = room.calls(*((it.name, given(it.name, id)) for it in TOOLS))

    assert tools == {}
    assert {it.structured_content["why"] for it in results} == {
        "the token in LOCKGATE_TOKEN belongs to no session"
    }
    assert shell.rows() == before


def test_the_token_of_a_session_that_has_ended_changes_nothing(sessions) -> None:
    shell, id, tokens = sessions
    shell.dies(id)
    before = shell.rows()
    room = Room(shell, token=tokens[Part.WORKER])

    results = room.calls(*((it, given(it, id)) for it in sorted(WORKERS - {"get_my_task"})))

    assert all(it.is_error for it in results), results
    assert shell.rows() == before


def test_a_session_acts_on_its_own_task_alone(sessions) -> None:
    """Its tools name no task; the token says which."""
    shell, id, tokens = sessions

    mine = Room(shell, token=tokens[Part.WORKER]).did("get_my_task")
    named = Room(shell, token=tokens[Part.WORKER]).refused("get_my_task", task_id="one")

    assert mine["id"] == id
    assert "task_id: Extra inputs are not permitted" in named["why"]


def test_an_answer_is_never_longer_than_a_client_takes(shell) -> None:
    room = Room(shell)
    plans = [
        [{"name": f"m{number}-{n}", "summary": "y" * 190} for n in range(MOST_TASKS)]
        for number in range(2)
    ]
    made = [room.did("create_tasks", tasks=it) for it in plans][-1]
    context = "\n".join(f"line {number} of much" for number in range(4000))
    long = room.did("create_task", summary="Long", context=context)["id"]

    (page, log) = room.calls(("get_task", {"task_id": long}), ("events", {"limit": 500}))
    sizes, seen, after = list[int](), list[str](), None
    while not sizes or after:
        board = room.call("list_tasks", limit=200, **({"after": after} if after else {}))
        seen += [it["id"] for it in board.structured_content["rows"]]
        after = board.structured_content["after"]
        sizes.append(len(text_of(board)))

    assert made["cut"]["tasks"] > 0
    assert page.structured_content["cut"]["text"] > 40_000
    assert all(it <= MOST for it in (*sizes, len(text_of(page)), len(text_of(log))))
    assert len(seen) == len(set(seen)) == 2 * MOST_TASKS + 1
    assert len(sizes) > 1
    last = log.structured_content["events"][-1]["seq"]
    assert last == log.structured_content["next"] < 2 * MOST_TASKS + 1


@pytest.mark.parametrize("mode", BOTH)
def test_the_board_has_the_hosts_of_a_fleet_and_nothing_of_them_without_one(shell, mode) -> None:
    room = Room(shell, mode=mode)
    alone = room.did("list_tasks")
    app = shell.app()
    with_fleet(app)
    app.close()

    fleet = room.did("list_tasks")["fleet"]

    assert alone.get("fleet") is None
    assert fleet["leader"] == "h1"
    assert [it["host"]["name"] for it in fleet["hosts"]] == ["h1", "h2"]
    assert [it["why"] for it in fleet["jobs"]] == ["waits: no host has gpu"]
