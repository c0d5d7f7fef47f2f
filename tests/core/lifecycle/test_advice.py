"""The one command that moves a task on, for every place where a task can stand."""

import pytest
from msgspec.structs import replace

from lockgate.core.lifecycle.advice import BY_STATUS, RUN, Surroundings, advice
from lockgate.core.model.task import Cause, Status, TaskId
from tests.given import ID, NOW, RULES, a_task, evidence

S = Status
NOTHING = Surroundings()
UPDATE = f"lockgate task update {ID} --status"
AUTO = replace(RULES, lands_alone=True)


@pytest.mark.parametrize(
    ("task", "command"),
    [
        (a_task(S.PENDING, pinned=None), ""),
        (a_task(S.PENDING, pinned=None, auto_start=False), f"lockgate task start {ID}"),
        (a_task(S.CLARIFICATION), f"lockgate answer {ID} -m TEXT"),
        (a_task(S.WORKING), ""),
        (a_task(S.WORKING, dead=True), f"lockgate task respawn {ID}"),
        (a_task(S.WORKING, taken_over=True), f"lockgate handback {ID}"),
        (a_task(S.WORKING, not_before=NOW + 1000), ""),
        (a_task(S.AGENT_REVIEW), ""),
        (a_task(S.AGENT_REVIEW, waiting="human"), f"lockgate approve {ID}"),
        (a_task(S.REVIEWING), f"lockgate queue approve {ID}"),
        (a_task(S.REVIEWING, pinned=AUTO), ""),
        (a_task(S.REVIEWING, pinned=AUTO, held="no"), f"lockgate queue approve {ID}"),
        (a_task(S.REVIEWING, to_land=True), ""),
        (a_task(S.REVIEWING, landed="a" * 40), ""),
        (a_task(S.STUCK), f"{UPDATE} working --directive TEXT"),
        (a_task(S.STUCK, cause=Cause.GATE_BROKEN), f"{UPDATE} agent-review"),
        (a_task(S.STUCK, cause=Cause.BUDGET), f"{UPDATE} working"),
        (a_task(S.STUCK, cause=Cause.SERVICE), f"{UPDATE} working"),
        (a_task(S.PAUSED_FOR_INTERVENTION), f"lockgate resume {ID} --directive TEXT"),
        (a_task(S.DONE), ""),
        (a_task(S.CANCELLED), ""),
        (a_task(S.STUCK, troubled="the disk is full"), ""),
    ],
)
def test_each_place_has_its_one_command_or_none(task, command) -> None:
    found = advice(evidence(task), NOTHING)

    assert found.command == command
    assert found.why


def test_what_has_landed_is_told_with_how_it_is_undone() -> None:
    found = advice(evidence(a_task(S.DONE, landed="a" * 40)), NOTHING)

    assert found.why == f"it is done; to revert it: lockgate undo {ID}"


def test_every_status_has_its_advice() -> None:
    assert set(BY_STATUS) == set(Status)


def test_a_task_that_cannot_start_is_told_what_it_needs_first() -> None:
    seen = evidence(a_task(S.PENDING, pinned=None), untrusted="it wants the network")

    assert advice(seen, NOTHING).command == "lockgate trust, in its repository"


def test_a_task_waits_for_those_that_it_depends_on() -> None:
    seen = evidence(a_task(S.PENDING, pinned=None))

    found = advice(seen, Surroundings(unfinished=(TaskId("other-1"),)))

    assert (found.why, found.command) == ("it starts when these are done: other-1", "")


def test_files_in_the_way_of_a_landing_are_named_with_what_puts_them_away() -> None:
    blocked = f"local edits would be overwritten: a.txt{RUN}git stash push -- a.txt"

    found = advice(evidence(a_task(S.REVIEWING, to_land=True)), Surroundings(blocked=blocked))

    assert found.why == "local edits would be overwritten: a.txt"
    assert found.command == "git stash push -- a.txt"


def test_what_was_merged_by_hand_is_only_to_be_called_done() -> None:
    found = advice(evidence(a_task(S.REVIEWING), landed=True), NOTHING)

    assert found.command == f"{UPDATE} done"


@pytest.mark.parametrize("held", ["", "no"])
def test_a_change_that_is_not_in_the_target_is_never_led_around_the_queue(held) -> None:
    found = advice(evidence(a_task(S.REVIEWING, held=held)), NOTHING)

    assert "merge" not in f"{found.why} {found.command}"
    assert "--status done" not in found.command
