"""The wheel: what is read where, what is on disk together, and what a crash in between leaves."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lockgate.bootstrap import open_app
from lockgate.core.lifecycle.moves import Move
from lockgate.core.model.agents import End, Ending, Exit, Report, Usage
from lockgate.core.model.task import Role, SessionId, Status
from lockgate.errors import BadConfig, Refused, StaleTask, TransitionRefused, TurnDeclined
from lockgate.services.task.callers import HUMAN
from lockgate.services.task.coordinator import Effector
from tests.scenarios.world import REVIEW_ONLY, World, git

S = Status
HANDOFF = "## Handoff\nDONE: it\n"


def _workspace(place: Path, text: str) -> Path:
    place.mkdir()
    (place / "TASK.md").write_text(text)
    return place


# --- where artifacts are read -------------------------------------------------------------------


@pytest.mark.req("R76", "R77")
def test_a_workers_handoff_is_read_in_its_workspace_and_copied_into_the_canonical_file(
    world, tmp_path
) -> None:
    id = world.started()
    worker = world.begin(id, Role.WORKER, _workspace(tmp_path / "w", HANDOFF))

    world.move(id, S.AGENT_REVIEW, worker)

    text = world.path(id).read_text()
    assert "DONE: it" in text
    assert "status: agent-review" in text
    assert "## Context" in text


def test_a_worker_that_writes_a_review_writes_nothing_that_counts(world, tmp_path) -> None:
    id = world.started()
    place = _workspace(tmp_path / "w", f"{HANDOFF}\n## Review\nPASS\n")
    world.move(id, S.AGENT_REVIEW, world.begin(id, Role.WORKER, place))

    reviewer = world.begin(id, Role.REVIEWER, _workspace(tmp_path / "r", "nothing here\n"))

    with pytest.raises(TransitionRefused, match="no '## Review'"):
        world.move(id, S.REVIEWING, reviewer)
    assert "## Review" not in world.path(id).read_text()


def test_a_refused_move_leaves_the_canonical_file_as_it_was(world, tmp_path) -> None:
    id = world.started()
    place = _workspace(tmp_path / "w", "## Notes\nhalf way\n")
    worker = world.begin(id, Role.WORKER, place)
    before = world.path(id).read_bytes()

    with pytest.raises(TransitionRefused):
        world.move(id, S.AGENT_REVIEW, worker)

    assert world.path(id).read_bytes() == before


@pytest.mark.parametrize("gone", ["directory", "file", "link"])
def test_a_workspace_without_a_task_file_hands_nothing_on(world, tmp_path, gone) -> None:
    id = world.started()
    place = _workspace(tmp_path / "w", HANDOFF)
    worker = world.begin(id, Role.WORKER, place)
    (place / "TASK.md").unlink()
    if gone == "directory":
        place.rmdir()
    if gone == "link":
        (tmp_path / "elsewhere.md").write_text(HANDOFF)
        (place / "TASK.md").symlink_to(tmp_path / "elsewhere.md")

    with pytest.raises(TransitionRefused, match=r"TASK\.md|link"):
        world.move(id, S.AGENT_REVIEW, worker)

    assert world.task(id).status is S.WORKING


# --- the mirror ---------------------------------------------------------------------------------


def test_an_edited_frontmatter_is_put_back_and_the_log_says_so(world) -> None:
    id = world.started()
    path = world.path(id)
    path.write_text(path.read_text().replace("status: working", "status: done") + HANDOFF)

    world.move(id, S.AGENT_REVIEW)

    assert "status: agent-review" in path.read_text()
    assert "DONE: it" in path.read_text()
    tampered = [it for it in world.app.views.all_events(id) if it.type == "artifact.tampered"]
    assert len(tampered) == 1
    assert "status: done" in str(tampered[0].data["found"])


def test_an_edited_frontmatter_is_put_back_even_when_the_move_is_refused(world) -> None:
    id = world.started()
    path = world.path(id)
    path.write_text(path.read_text().replace("crash_count: 0", "crash_count: -5"))

    with pytest.raises(TransitionRefused):
        world.move(id, S.AGENT_REVIEW)

    assert "crash_count: 0" in path.read_text()


def test_a_task_file_that_cannot_be_read_is_left_alone_and_the_task_goes_on(world) -> None:
    id = world.started()
    path = world.path(id)
    path.write_bytes(b"\xff\xfe what a human wrote in the wrong encoding")

    with pytest.raises(TransitionRefused, match="UTF-8"):
        world.move(id, S.AGENT_REVIEW)
    world.move(id, S.STUCK)

    assert path.read_bytes().startswith(b"\xff\xfe")
    assert world.task(id).status is S.STUCK
    assert "UTF-8" in str(world.app.boards.page(id).view.trouble)


def test_a_lost_task_file_is_made_again_by_the_next_turn(world) -> None:
    id = world.started()
    world.path(id).unlink()

    world.move(id, S.CLARIFICATION)

    assert "status: clarification" in world.path(id).read_text()


@pytest.mark.parametrize("left", [b"", None])
def test_a_file_that_a_power_cut_emptied_is_written_again_from_the_database(world, left) -> None:
    id = world.started()
    world.write(id, "## Notes\nthe cookie is the cause\n")
    world.move(id, S.CLARIFICATION)
    if left is None:
        world.path(id).unlink()
    else:
        world.path(id).write_bytes(left)

    world.move(id, S.WORKING)

    assert "the cookie is the cause" in world.path(id).read_text()
    assert "status: working" in world.path(id).read_text()


def test_a_move_stands_though_its_mirror_could_not_be_written(world) -> None:
    id = world.started()
    path = world.path(id)
    path.rename(path.with_name("aside.md"))
    path.mkdir()

    task = world.move(id, S.CLARIFICATION)

    assert task.status is S.CLARIFICATION
    path.rmdir()
    path.with_name("aside.md").rename(path)
    assert "could not be written" in str(world.app.boards.page(id).view.trouble)
    world.move(id, S.WORKING)
    assert "status: working" in path.read_text()
    assert "artifact.tampered" not in world.types(id)


def test_history_is_the_log_without_gaps_or_repeats(world) -> None:
    id = world.started()
    world.create("another")
    world.move(id, S.CLARIFICATION)
    world.move(id, S.WORKING)

    lines = (world.home / "tasks" / id / "history.jsonl").read_text().splitlines()

    told = [json.loads(line)["seq"] for line in lines]
    assert told == [event.seq for event in world.app.views.all_events(id)]


# --- a crash between commit and act -------------------------------------------------------------


class Dies(Exception):
    """The process, at this point."""


class _DyingEffector(Effector, frozen=True):
    def carry_out(self, id: str) -> None:
        raise Dies


def test_what_was_committed_is_acted_on_after_a_restart_and_is_no_tampering(world) -> None:
    id = world.started()
    worker = world.begin(id, Role.WORKER, _workspace(world.home.parent / "w", HANDOFF))
    coordinator = world.app.coordinator
    dying = type(coordinator)(
        coordinator.store,
        coordinator.witness,
        _DyingEffector(coordinator.store, world.app.views.files),
    )

    with pytest.raises(Dies):
        dying.move(id, Move(S.AGENT_REVIEW), worker)

    assert "status: working" in world.path(id).read_text()
    world.restart()
    world.app.coordinator.effector.carry_out(id)
    assert "status: agent-review" in world.path(id).read_text()
    assert "DONE: it" in world.path(id).read_text()
    assert "artifact.tampered" not in world.types(id)


def test_a_text_accepted_before_a_crash_is_not_lost_to_the_next_turn(world) -> None:
    id = world.started()
    worker = world.begin(id, Role.WORKER, _workspace(world.home.parent / "w", HANDOFF))
    coordinator = world.app.coordinator
    dying = type(coordinator)(
        coordinator.store,
        coordinator.witness,
        _DyingEffector(coordinator.store, world.app.views.files),
    )
    with pytest.raises(Dies):
        dying.move(id, Move(S.AGENT_REVIEW), worker)
    world.restart()

    world.move(id, S.CANCELLED)

    assert "DONE: it" in world.path(id).read_text()
    assert "status: cancelled" in world.path(id).read_text()
    assert "DONE: it" in str(world.app.store.body(id))


def test_an_effect_carried_out_twice_is_as_once(world) -> None:
    id = world.started()
    before = world.path(id).read_bytes()

    world.app.coordinator.effector.carry_out(id)
    world.app.coordinator.effector.carry_out(id)

    assert world.path(id).read_bytes() == before


# --- many at once -------------------------------------------------------------------------------


def test_a_signal_sent_ten_times_at_once_moves_the_task_once(world) -> None:
    id = world.started()
    world.write(id, HANDOFF)

    def signal(_: int) -> str:
        app = open_app({"LOCKGATE_HOME": str(world.home)})
        try:
            return str(app.coordinator.move(id, Move(S.AGENT_REVIEW), HUMAN).status)
        except (Refused, StaleTask) as refusal:
            return type(refusal).__name__
        finally:
            app.store.close()

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(signal, range(10)))

    assert answers.count("agent-review") == 1
    moves = [it for it in world.app.views.all_events(id) if it.data.get("to") == "AGENT_REVIEW"]
    assert len(moves) == 1
    assert world.app.store.first_broken_event() is None


def test_ten_reports_of_one_death_are_one_crash(world) -> None:
    id = world.started()
    worker = world.begin(id, Role.WORKER)
    assert worker.session is not None
    session = worker.session.id

    end = End(Exit(ending=Ending.EXITED, seconds=7.0), Report(), Usage(0.5, 900))

    def report(_: int) -> str:
        app = open_app({"LOCKGATE_HOME": str(world.home)})
        try:
            return str(app.attendance.session_ended(session, end).status)
        except TurnDeclined as refusal:
            return refusal.why
        finally:
            app.store.close()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(report, range(4)))

    task = world.task(id)
    assert sorted(answers) == ["this session has ended already"] * 3 + ["working"]
    assert (task.crash_count, task.failed_attempts) == (1, 1)
    assert (task.usd, task.tokens, task.seconds) == (0.5, 900, 7.0)


def test_a_session_that_never_was_does_not_end(world) -> None:
    with pytest.raises(Refused, match="no session has that id"):
        world.app.attendance.session_ended(SessionId("nobody.1"))


# --- configuration ------------------------------------------------------------------------------


@pytest.mark.req("R122")
def test_the_rules_are_those_of_base_when_the_task_started(world) -> None:
    id = world.started()
    (world.root / ".lockgate" / "config.toml").write_text(REVIEW_ONLY + "[limits]\ncrashes = 1\n")
    git(world.root, "commit", "--all", "--quiet", "--message", "stricter")

    first = world.ends(world.begin(id, Role.WORKER))
    other = world.started("other")
    second = world.ends(world.begin(other, Role.WORKER))

    assert first.status is S.WORKING
    assert second.status is S.STUCK


def test_a_configuration_in_the_work_tree_alone_counts_for_nothing(world) -> None:
    (world.root / ".lockgate" / "config.toml").write_text("[gates]\nformula = 'nonsense'\n")

    id = world.started()

    assert world.task(id).status is S.WORKING


@pytest.mark.req("R122", "R152")
def test_no_configuration_at_all_is_code_review_and_nothing_gets_past_its_gates(tmp_path) -> None:
    world = World.at(tmp_path, None)
    id = world.create(agent="scripted")
    world.move(id, S.WORKING)
    world.write(id, HANDOFF + "\n## Review\nPASS\n")
    world.move(id, S.AGENT_REVIEW)

    with pytest.raises(TransitionRefused, match="tests, typecheck"):
        world.move(id, S.REVIEWING, force=True, reason="trust me")


def test_a_broken_configuration_stops_a_start_but_not_a_cancel(tmp_path) -> None:
    world = World.at(tmp_path, REVIEW_ONLY)
    id = world.create()
    (world.root / ".lockgate" / "config.toml").write_text("[gatez]\n")
    git(world.root, "commit", "--all", "--quiet", "--message", "broken")

    with pytest.raises(TransitionRefused, match="gatez"):
        world.move(id, S.WORKING)
    with pytest.raises(BadConfig, match="gatez"):
        world.create("another")
    assert world.move(id, S.CANCELLED).status is S.CANCELLED


def test_base_may_name_another_branch_and_its_configuration_is_the_one_that_counts(
    tmp_path,
) -> None:
    world = World.at(tmp_path, REVIEW_ONLY.replace("[project]", '[project]\nbase = "trunk"'))
    git(world.root, "checkout", "--quiet", "-b", "trunk")
    (world.root / ".lockgate" / "config.toml").write_text(
        REVIEW_ONLY.replace("[project]", '[project]\nbase = "trunk"') + "[limits]\ncrashes = 1\n"
    )
    git(world.root, "commit", "--all", "--quiet", "--message", "trunk's own")

    task = world.task(world.started())

    assert task.pinned is not None
    assert task.pinned.base == "trunk"
    assert task.pinned.limits.crashes == 1
