"""Every kind of need, made on real services: each action that it offers is carried out, and taken.

A need says its actions as commands to paste; the board's keys, the web's buttons and MCP's tools
call the same services.
"""

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.bootstrap import App
from lockgate.core.lifecycle.decision import Decision
from lockgate.core.lifecycle.needs import Need, NeedKind, Trouble
from lockgate.core.lifecycle.records import lost_its_dependency, troubled
from lockgate.core.model.task import Cause, TaskId
from lockgate.ports import InTheWay
from lockgate.services.train.landing import in_the_way
from tests.faces.shell import CONFIG as PLAIN
from tests.faces.shell import Shell, make_repository
from tests.faces.tui.conftest import Home

pytestmark = pytest.mark.measured

K = NeedKind
NOW = 1_800_000_000.0
ASKS_FOR_MORE = '[sandbox]\nlevel = "none"\n'
# The tasks of the home that are there with such a need already.
THERE = {
    K.APPROVE: "approve",
    K.LAND: "land",
    K.ANSWER: "answer",
    K.STUCK: "stuck",
    K.PAUSED: "paused",
    K.DEAD: "dead",
}
# What is set in the row of a task, as the service does that finds it out.
MARKED: dict[NeedKind, tuple[str, dict[str, object]]] = {
    K.ESCALATION: ("working", {"escalated": "step green failed 3 times"}),
    K.LIMIT: ("dead", {"not_before": NOW}),
    K.LOGIN: ("stuck", {"cause": Cause.LOGIN, "agent": "claude"}),
    K.BUDGET: ("stuck", {"cause": Cause.BUDGET}),
}
LANES = {
    K.RED_TIP: Trouble(why="main itself fails", kind=K.RED_TIP, since=NOW),
    K.SURROUNDINGS: Trouble(why="the disk is full", times=9, since=NOW),
}


def marked(own: Home, kind: NeedKind) -> None:
    name, fields = MARKED[kind]
    app = own.app()
    task = app.store.load(own.ids[name])
    app.store.commit(Decision(replace(task, rev=task.rev + 1, **fields)))
    app.close()


def in_trouble(own: Home) -> None:
    app = own.app()
    app.store.commit(troubled(app.store.load(own.ids["working"]), "git gave no answer", NOW))
    app.close()


def held(own: Home) -> None:
    own.shell.did("queue", "hold", own.ids["land"], "-m", "after the release")


def waits_in_vain(own: Home) -> None:
    """As the loop marks what waits for a task that was cancelled."""
    first = own.ids["stuck"]
    later = own.shell.did("task", "create", "later", "Later", "--depends-on", first).strip()
    own.shell.did("task", "cancel", first)
    app = own.app()
    task = app.store.load(TaskId(later))
    app.store.commit(lost_its_dependency(task, f"{first} is cancelled", NOW))
    app.close()


def taken_over(own: Home) -> None:
    app = own.app()
    app.people.take_over(own.ids["working"], app.caller)
    app.close()
    own.shell.write(own.ids["working"], "\n## Handoff\n\nDONE: by hand\n")


MADE: dict[NeedKind, Callable[[Home], None]] = {
    K.HELD: held,
    K.DEPENDENCY: waits_in_vain,
    K.YOURS: taken_over,
    K.TROUBLE: in_trouble,
}


def of_project(kind: NeedKind, place: Path) -> Home:
    """A home of its own, whose repository is in the state that the need is about."""
    make_repository(place / "repo", PLAIN)
    shell = Shell(place)
    id = shell.create()
    config = shell.repo / ".lockgate" / "config.toml"
    if kind is K.TRUST:
        config.write_text(f"{PLAIN}{ASKS_FOR_MORE}", encoding="utf-8")
        shell.git("commit", "--quiet", "--all", "--message", "Ask for more")
        app = shell.app()
        app.configuration.trust.forget(app.projects.here(shell.repo))
        app.close()
        assert shell.run("task", "update", id, "--status", "working").code == 1
    else:
        (shell.repo / "app.py").write_text("print('mine')\n", encoding="utf-8")
    return Home(shell, {"it": id})


def lane_of(kind: NeedKind, home: Home) -> dict[str, Trouble]:
    """What the loop would know, which is in no row."""
    trouble = LANES.get(kind)
    if kind is K.CHECKOUT:
        why = in_the_way(InTheWay("your edits are in the way", ("app.py",), str(home.shell.repo)))
        trouble = Trouble(why=why, kind=kind, since=NOW)
    if trouble is None:
        return {}
    app = home.app()
    project = app.store.load(next(iter(home.ids.values()))).project
    app.close()
    return {"queue of main": replace(trouble, project=project)}


def home_with(kind: NeedKind, own: Home, place: Path) -> Home:
    if kind in {K.TRUST, K.CHECKOUT}:
        return of_project(kind, place / "other")
    if kind in MARKED:
        marked(own, kind)
    elif kind in MADE:
        MADE[kind](own)
    return own


def need_in(home: Home, kind: NeedKind) -> Need:
    app = replace(home.app(), troubles=lane_of(kind, home))
    found = [it for it in app.boards.inbox().needs if it.kind is kind]
    app.close()
    if kind in THERE:
        found = [it for it in found if it.task == home.ids[THERE[kind]]]
    assert found, f"there is no need of the kind {kind}"
    return found[0]


def carry_out(shell: Shell, command: str) -> None:
    """As somebody does who pastes it, with words of theirs for TEXT."""
    where, _, rest = command.rpartition(" && ")
    cwd = Path(shlex.split(where)[1]) if where else shell.repo
    words = ["as I say" if it == "TEXT" else it for it in shlex.split(rest)]
    if words[0] == "git":
        subprocess.run(words, env=shell.environment(), check=True, capture_output=True)
        return
    assert words[0] == "lockgate", command
    if words[1] == "takeover":  # it wants a terminal, which tests/e2e gives it
        app: App = shell.app()
        app.people.take_over(TaskId(words[2]), app.caller)
        app.close()
    elif words[1] == "trust":  # it asks for a yes at a terminal
        shell.agree(cwd=cwd)
    elif words[1] == "auth":  # it asks for the token at a terminal
        answer = shell.program(*words[1:], "--token-stdin", stdin=b"sk-a-token")
        assert answer.code == 0, answer
    else:
        answer = shell.run(*words[1:], cwd=cwd)
        assert answer.code == 0, answer


@pytest.mark.req("R131")
@pytest.mark.parametrize("kind", NeedKind)
def test_each_action_of_a_need_is_taken_by_the_service(kind: NeedKind, own: Home, tmp_path: Path):
    home = home_with(kind, own, tmp_path)
    need = need_in(home, kind)
    assert need.actions

    for number, action in enumerate(need.actions):
        copy = Shell(tmp_path / str(number))
        shutil.copytree(home.shell.home, copy.home)
        copy.repo = home.shell.repo
        carry_out(copy, action.command)


def test_a_days_budget_that_is_used_up_names_the_key_that_raises_it(own: Home):
    """Its action is no command: the file that it names takes that key."""
    trouble = Trouble(why="$5.00 of $5.00 are spent today", kind=K.BUDGET, since=NOW)
    app = own.app()
    project = app.store.load(own.ids["land"]).project
    app = replace(app, troubles={"starts": replace(trouble, project=project)})
    [need] = [it for it in app.boards.inbox().needs if it.kind is K.BUDGET]
    app.close()

    [action] = need.actions

    file = Path(action.command.rpartition(" in ")[2])
    assert file == own.shell.repo / ".lockgate" / "config.toml"
    assert file.is_file()
    assert "day_usd" in action.command
