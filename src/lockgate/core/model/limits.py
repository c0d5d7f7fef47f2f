"""Every limit, in one place; the `[limits]` and `[retry]` tables set them.

| limit                | counts, over what span               | reached          | reset by        |
|----------------------|--------------------------------------|------------------|-----------------|
| escalation_threshold | failed attempts, a task's whole life | paused           | resume, done    |
| crashes              | crashes, in one status               | stuck            | any move        |
| review_rounds        | agent reviews                        | stuck, on a FAIL | a human, see 1) |
| max_iterations       | work, gates, feedback: once each     | stuck            | a human, see 1) |
| step_failures        | failures in a row, at one step       | ESCALATION       | a pass; per run |
| call_attempts        | tries, of one sandboxed call         | the call failed  | every call      |

1) when a human takes the task out of stuck or paused-for-intervention.
"""

from enum import StrEnum

from msgspec import Struct

PRIORITIES = range(1, 6)  # of tasks; the first is the most urgent
ESCALATION_THRESHOLD = 5
MAX_CRASHES = 2
MAX_REVIEW_ROUNDS = 2
MAX_ITERATIONS = 3
MAX_CONSECUTIVE_FAILURES = 3
MAX_ATTEMPTS = 3
BASE_DELAY_MS = 500
BACKOFF_MULTIPLIER = 2.0
FRESH_AFTER_FAILURES = 2
LARGE_FILES, LARGE_BYTES = 200, 1_000_000  # a change of more is said to be large
STRENGTH_SECONDS = 60  # in which changed tests are tried on planted faults
SAME_FAILURES = 3  # of a lane of the loop, in the same way, before a human is told
ANY_FAILURES = 8  # of a lane in a row, in whatever ways, before a human is told
FIRST_WAIT, LONGEST_WAIT = 5.0, 300.0  # seconds before a lane that failed is tried again


class Limits(Struct, frozen=True, kw_only=True):
    """S0's, S1's, S2's and S4's limits, as `[limits]` sets them."""

    step_failures: int = MAX_CONSECUTIVE_FAILURES
    call_attempts: int = MAX_ATTEMPTS
    call_base_delay_ms: int = BASE_DELAY_MS
    call_backoff: float = BACKOFF_MULTIPLIER
    crashes: int = MAX_CRASHES
    review_rounds: int = MAX_REVIEW_ROUNDS
    escalation_threshold: int = ESCALATION_THRESHOLD


class Strategy(StrEnum):
    """Who gets the feedback: the agent that wrote the work, or one with a clean context."""

    SAME = "same"
    FRESH = "fresh"
    AUTO = "auto"


class RetryConfig(Struct, frozen=True, kw_only=True):
    """S3's limits on the evaluation loop, as `[retry]` sets them."""

    strategy: Strategy = Strategy.AUTO
    fresh_after_failures: int = FRESH_AFTER_FAILURES
    max_iterations: int = MAX_ITERATIONS
