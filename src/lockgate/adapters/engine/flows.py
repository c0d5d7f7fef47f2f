"""The two shapes that a lane has in Temporal, which replays them; nothing of ours is imported.

A change of a shape that workflows in flight may have begun with is a new type beside the old one.
"""

from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, TimeoutError, TimeoutType, is_cancelled_exception

FLOWS = "lockgate-flows"  # the queue of the workflows themselves, which every host serves
DO, LOST = "do", "lost"  # the activities
LONGEST = timedelta(days=30)  # of one attempt; what hangs is noticed by its deadlines, not here
FIRST, LAST = timedelta(seconds=0.3), timedelta(seconds=5)  # between two attempts
# As soon after the tenth host that was gone as after the first: who leads does so for months, and
# each takeover is an attempt. A host that a server does not answer says itself how long to wait.
FOR_EVER = RetryPolicy(initial_interval=FIRST, backoff_coefficient=1.0)
ONCE = RetryPolicy(maximum_attempts=1)


@dataclass(frozen=True)
class Asked:
    """All that Temporal is told of a job: no prompt, no token and no change is in it."""

    lane: str
    queue: str
    beat: float  # seconds without a sign of life after which it is tried elsewhere
    host: str = ""  # the only one that can do it, where it is bound to one
    elsewhere: str = ""  # the queue that hears of the loss of that host
    lost_after: float = 60.0  # seconds until that host counts as lost


@workflow.defn(name="Lane")
class LaneFlow:
    """One activity, on any host that serves the queue, tried until it was answered."""

    @workflow.run
    async def run(self, asked: Asked) -> None:
        await workflow.execute_activity(
            DO,
            asked.lane,
            task_queue=asked.queue,
            heartbeat_timeout=timedelta(seconds=asked.beat),
            start_to_close_timeout=LONGEST,
            retry_policy=FOR_EVER,
        )


@workflow.defn(name="Bound")
class BoundFlow:
    """On one host; where it does not come back in time, another one records that it is lost."""

    @workflow.run
    async def run(self, asked: Asked) -> None:
        wait = FIRST
        while not workflow.info().is_continue_as_new_suggested():
            try:
                await self._attempt(asked)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise
                if _never_began(error):
                    await self._lose(asked)
                    return
            else:
                return
            await workflow.sleep(wait)
            wait = min(wait * 2, LAST)
        workflow.continue_as_new(asked)

    async def _attempt(self, asked: Asked) -> None:
        await workflow.execute_activity(
            DO,
            asked.lane,
            task_queue=asked.queue,
            schedule_to_start_timeout=timedelta(seconds=asked.lost_after),
            heartbeat_timeout=timedelta(seconds=asked.beat),
            start_to_close_timeout=LONGEST,
            retry_policy=ONCE,
        )

    async def _lose(self, asked: Asked) -> None:
        await workflow.execute_activity(
            LOST,
            args=[asked.lane, asked.host],
            task_queue=asked.elsewhere,
            heartbeat_timeout=timedelta(seconds=asked.beat),
            start_to_close_timeout=LONGEST,
            retry_policy=FOR_EVER,
        )


def _never_began(error: ActivityError) -> bool:
    cause = error.cause
    return isinstance(cause, TimeoutError) and cause.type is TimeoutType.SCHEDULE_TO_START
