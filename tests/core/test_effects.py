"""Effects that nobody needs any more, because the task has moved on."""

import pytest

from lockgate.core.effects import (
    DiscardTask,
    EndSessions,
    EvaluateGates,
    MirrorTask,
    NotifyHuman,
    PrepareWorkspace,
    ReleaseWorkspace,
    SpawnAgent,
    overtaken,
    wants_fresh,
)
from lockgate.core.model import Role, Status
from tests.given import a_task

S = Status
WORKER = SpawnAgent(Role.WORKER, 3)
REVIEWER = SpawnAgent(Role.REVIEWER, 5)


@pytest.mark.parametrize(
    ("effect", "still_wanted"),
    [
        (WORKER, {S.WORKING, S.CLARIFICATION}),
        (SpawnAgent(Role.WORKER, 2), set()),
        (REVIEWER, {S.AGENT_REVIEW}),
        (EvaluateGates(1), {S.AGENT_REVIEW}),
        (EvaluateGates(2), set()),
        (NotifyHuman(S.STUCK, "stuck"), {S.STUCK}),
        (PrepareWorkspace(), set(S) - {S.DONE, S.CANCELLED}),
        (MirrorTask(), set(S)),
        (EndSessions(), set(S)),
        (ReleaseWorkspace(), set(S)),
        (DiscardTask(), set(S)),
    ],
)
def test_an_effect_is_wanted_only_while_its_task_stands_where_it_was_asked_for(
    effect, still_wanted
) -> None:
    wanted = {status for status in S if not overtaken(effect, a_task(status))}

    assert wanted == still_wanted


def test_a_task_that_has_failed_nowhere_wants_no_fresh_agent() -> None:
    assert not wants_fresh(a_task())
    assert not wants_fresh(a_task(pinned=None))
