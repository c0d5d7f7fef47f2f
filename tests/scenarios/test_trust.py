"""A repository that asks for what its user has not agreed to: nothing of it goes on."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.decision import Decision, Evidence, PrepareWorkspace
from lockgate.core.lifecycle.needs import NeedKind, in_one_line
from lockgate.core.lifecycle.transition import stay
from lockgate.core.model.agents import file_agent
from lockgate.core.model.task import Status, TaskId
from lockgate.errors import Untrusted
from lockgate.services.train.queue import LOOK
from tests.given import HANDOFF
from tests.scenarios.stage import Stage
from tests.scenarios.train.test_landing import CONFIG, Junction, asked
from tests.scenarios.world import REVIEW_ONLY, World

S = Status
BARE = REVIEW_ONLY.replace(
    "[[gates.list]]",
    '[[gates.list]]\nname = "tests"\ntype = "command"\ncommand = "true"\n[[gates.list]]',
) + ('[sandbox]\nlevel = "none"\n')
A_MINUTE = 61.0
AUTO = CONFIG.replace("BATCH", "1").replace("STRATEGY", "merge")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, BARE)
    yield made
    made.app.store.close()


def forget(it: Stage | Junction) -> None:
    world = it.world
    world.app.configuration.trust.forget(world.project())


def agree(it: Stage | Junction) -> None:
    world = it.world
    world.app.configuration.agree(world.project())


def untrusted(stage: Stage) -> list[str]:
    needs = stage.app.boards.inbox().needs
    return [in_one_line(it) for it in needs if it.kind is NeedKind.TRUST]


def test_a_file_is_not_started_as_an_agent_where_the_sandbox_is_gone_since(stage) -> None:
    agree(stage)
    id = stage.world.create()
    made = replace(stage.app.store.load(id), agent=file_agent("agent.sh", "0" * 64))

    def by_file(seen: Evidence) -> Decision:
        return stay(seen, made)

    stage.app.coordinator.turn(id, by_file)
    stage.turn()

    assert stage.world.task(id).status is S.WORKING
    assert stage.sessions.runs == []
    assert any("in the sandbox only" in it for it in stage.reports)


# --- the loop -----------------------------------------------------------------------------------


def test_the_loop_starts_no_task_of_it_and_says_so_until_its_user_agrees(stage) -> None:
    forget(stage)
    ids = [stage.world.create(f"b{number}") for number in range(3)]
    stage.turn()
    stage.turn(A_MINUTE)

    assert {stage.world.task(id).status for id in ids} == {S.PENDING}
    assert stage.sessions.runs == []
    [why] = untrusted(stage)
    assert "without a sandbox" in why
    assert f"cd {stage.world.root} && lockgate trust" in why
    assert stage.loop.is_quiet(), "nothing goes round in circles"

    agree(stage)
    stage.turn(A_MINUTE)

    assert {stage.world.task(id).status for id in ids} == {S.WORKING}
    assert untrusted(stage) == []


def test_a_task_at_work_gets_no_agent_no_gate_and_no_branch_once_the_yes_is_taken_back(
    stage,
) -> None:
    id = stage.world.create()
    stage.turn()
    [session] = stage.alive(id)
    (stage.workspaces.place(id) / "TASK.md").write_text(HANDOFF)
    forget(stage)
    stage.dies(session)
    stage.event(session)
    stage.turn()
    stage.turn(A_MINUTE)

    assert stage.world.task(id).status is S.AGENT_REVIEW
    assert stage.app.store.gate_results(id, 0, 9) == ()
    assert stage.alive(id) == []
    assert len(untrusted(stage)) == 1

    agree(stage)
    stage.turn(A_MINUTE)

    assert [it.gate for it in stage.app.store.gate_results(id, 0, 9)] == ["tests"]
    assert len(stage.alive(id)) == 1


def test_a_task_that_was_moved_by_force_is_not_even_given_a_workspace(stage) -> None:
    id = stage.world.create()
    stage.world.move(id, S.WORKING)
    forget(stage)

    stage.turn()

    waiting = [it.effect for it in stage.app.store.pending_effects(id, 9)]
    assert any(isinstance(it, PrepareWorkspace) for it in waiting)
    assert not stage.workspaces.place(id).exists()
    assert stage.sessions.runs == []


# --- the train ----------------------------------------------------------------------------------


@pytest.fixture
def junction(tmp_path: Path) -> Iterator[Junction]:
    made = Junction(World.at(tmp_path, AUTO), random.Random(1), 1)  # noqa: S311 - a story's own
    yield made
    made.world.app.store.close()


def test_nothing_lands_by_itself_where_nobody_agreed_to_that(junction) -> None:
    [id] = junction.changes(1)
    forget(junction)

    with pytest.raises(Untrusted, match="land changes by itself"):
        junction.run()
    assert junction.history() == []

    agree(junction)
    junction.time.at += LOOK + 1
    junction.run()
    assert junction.world.task(id).status is S.DONE


MORE = AUTO + '[env]\ncopy = [".env"]\n'


@pytest.mark.parametrize("human", [True, False])
def test_a_change_of_the_file_counts_as_agreed_to_where_a_human_let_it_land(
    junction, human
) -> None:
    project = junction.world.project()
    id = edits_the_file(junction, MORE, to_land=human)

    if human:
        junction.run()
    else:
        with pytest.raises(Untrusted, match=r"copy of your \.env"):
            junction.run()

    assert junction.world.task(id).status is S.DONE
    refused = [it.says for it in junction.world.app.configuration.refused(project)]
    assert refused == ([] if human else ["give its agents and gates a copy of your .env"])


def edits_the_file(it: Junction, text: str, *, to_land: bool) -> TaskId:
    stream = (
        "commit refs/test/more\ncommitter t <t@localhost> 1700000000 +0000\ndata 1\nx\n"
        f"from {it.start.commit}\nM 644 inline .lockgate/config.toml\ndata {len(text)}\n{text}\n"
    )
    asked(it.judge, "fast-import", "--quiet", stdin=stream)
    commit = asked(it.judge, "rev-parse", "refs/test/more").strip()
    id = it._waits(99, commit)

    def seen_by_a_human(seen: Evidence) -> Decision:
        protected = (".lockgate/config.toml",)
        return stay(seen, replace(seen.task, protected=protected, to_land=to_land))

    it.world.app.coordinator.turn(id, seen_by_a_human)
    return id
