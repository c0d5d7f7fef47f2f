"""Several tasks at once: from an assistant, and from a file; all of them or none."""

import json
import tomllib
from typing import Any

import pytest

from lockgate.core.model.task import Role, Status
from tests.faces.mcp.room import BOTH, Room
from tests.faces.shell import Shell

TOML = """\
[[tasks]]
name = "schema"
summary = "Add the column"
priority = 1
context = "The table is `orders`."

[[tasks]]
name = "api"
summary = "Serve the column"
branch = "api/orders"
depends_on = ["schema", "EARLIER"]
start = false
"""


def tasks(shell: Shell) -> dict[str, Any]:
    rows = json.loads(shell.did("task", "list", "--json"))["rows"]
    return {it["summary"]: shell.facts(it["id"]) for it in rows}


@pytest.mark.parametrize("kind", ["toml", "json"])
def test_a_plan_in_a_file_becomes_tasks_that_wait_for_each_other(shell, tmp_path, kind) -> None:
    earlier = shell.create("earlier")
    text = TOML.replace("EARLIER", earlier)
    if kind == "json":
        text = json.dumps(tomllib.loads(text))
    file = tmp_path / f"plan.{kind}"
    file.write_text(text)

    ids = shell.did("task", "create", "--plan", str(file)).split()

    made = tasks(shell)
    schema, api = made["Add the column"], made["Serve the column"]
    assert ids == [schema["id"], api["id"]]
    assert (schema["branch"], schema["priority"], schema["auto_start"]) == ("schema", 1, True)
    assert (api["branch"], api["auto_start"]) == ("api/orders", False)
    assert api["depends_on"] == [schema["id"], earlier]
    assert "The table is `orders`." in shell.file(str(schema["id"])).read_text()


BAD = {
    "a circle": ('[[tasks]]\nname="a"\nsummary="A"\ndepends_on=["a"]', "a waits for a"),
    "an unknown id": (
        '[[tasks]]\nname="a"\nsummary="A"\ndepends_on=["gone"]',
        "starts with 'gone'",
    ),
    "an unknown key": ('[[tasks]]\nname="a"\nsummary="A"\nwhy=1', "tasks.0.why: Extra inputs"),
    "a wrong type": ('[[tasks]]\nname="a"\nsummary=7', "tasks.0.summary: Input should be a valid"),
    "no task": ("tasks = []", "tasks: List should have at least 1 item"),
    "no TOML": ("[[tasks", "was not read"),
    "the last one is bad": (
        '[[tasks]]\nname="a"\nsummary="A"\n[[tasks]]\nname="b"\nsummary="B"\nagent="nobody"',
        "of 'b': no agent is called 'nobody'",
    ),
    "a branch that changes land on": (
        '[[tasks]]\nname="a"\nsummary="A"\n[[tasks]]\nname="main"\nsummary="B"',
        "of 'main': changes land on main",
    ),
    "a name that is no branch": ('[[tasks]]\nname="a..b"\nsummary="A"', "of 'a..b': 'a..b' is not"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_plan_that_is_wrong_leaves_nothing_behind(shell, tmp_path, name) -> None:
    text, why = BAD[name]
    shell.create("earlier")
    before = shell.traces()
    (tmp_path / "plan.toml").write_text(text)

    refused = shell.run("task", "create", "--plan", str(tmp_path / "plan.toml"))

    assert refused.err.startswith("no task of the plan was created: ")
    assert why in refused.why
    assert shell.traces() == before


def test_a_plan_is_a_humans_and_names_its_own_branches(shell, tmp_path) -> None:
    id = shell.create()
    shell.bring(id, Status.WORKING)
    token = shell.begin(id, Role.WORKER)
    file = tmp_path / "plan.toml"
    file.write_text('[[tasks]]\nname="a"\nsummary="A"')

    theirs = shell.run("task", "create", "--plan", str(file), token=token)
    both = shell.run("task", "create", "fix", "--plan", str(file))
    none = shell.run("task", "create")
    missing = shell.run("task", "create", "--plan", str(tmp_path / "nowhere.toml"))

    assert "a worker may not do that" in theirs.why
    assert both.code == none.code == 2
    assert "the plan could not be read from" in missing.why


@pytest.mark.parametrize("mode", BOTH)
def test_an_assistant_creates_a_plan_or_nothing(shell, mode) -> None:
    room = Room(shell, mode=mode)
    plan = [
        {"name": "api", "summary": "Serve it", "depends_on": ["schema"], "start": False},
        {"name": "schema", "summary": "Add it", "start": False},
    ]

    made = room.did("create_tasks", tasks=plan, project=str(shell.repo))["tasks"]
    before = shell.rows()
    again = room.refused("create_tasks", tasks=plan)

    assert [it["summary"] for it in made] == ["Serve it", "Add it"]
    assert made[0]["waits_for"] == [made[1]["id"]]
    assert "has the branch" in again["why"]
    assert shell.rows() == before
