"""A simulation of the merge train: the real planner, a virtual clock, and a world of our making."""

from dataclasses import dataclass

from lockgate.core.model.task import TaskId
from lockgate.services.train_run import Run
from lockgate.services.train_world import Draw, Scenario, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What came of it, times in T; a broken promise is a bug in the planner."""

    landed: tuple[tuple[float, TaskId], ...]
    dropped: tuple[TaskId, ...]
    elapsed: float
    tests: int
    cancelled: int
    moves: int
    kills: int
    overtaken: dict[TaskId, int]  # how many that came later landed before it
    priorities: dict[TaskId, int]
    broken_promises: tuple[str, ...]

    @property
    def throughput(self) -> float:
        """Landed changes in the time of one test."""
        return len(self.landed) / self.elapsed if self.elapsed else 0.0


def serial_throughput(failure_rate: float) -> float:
    """One change after the other: landings in the time of one test."""
    return 1 - failure_rate


def chain_throughput(failure_rate: float, window: int) -> float:
    """A chain that starts again behind the first failure, which shows at the end of its test."""
    good = 1 - failure_rate
    return float(window) if failure_rate == 0 else good * (1 - good**window) / failure_rate


def simulate(scenario: Scenario, draw: Draw) -> Simulated:
    run = Run(World(scenario, draw))
    run.play()
    return Simulated(
        landed=tuple(run.landed),
        dropped=tuple(run.dropped),
        elapsed=run.now,
        tests=run.tests,
        cancelled=run.cancelled,
        moves=run.moves,
        kills=run.kills,
        overtaken=run.overtaken,
        priorities=run.priorities,
        broken_promises=tuple(run.broken_promises),
    )
