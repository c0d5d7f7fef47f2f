"""The planner under a virtual clock: what it promises in every world, and how fast it is."""

from random import Random

import pytest
from msgspec.structs import replace

from lockgate.core.train.model import (
    CancelTest,
    Conflict,
    Drop,
    Land,
    Queue,
    Red,
    SetAside,
    StartTest,
    Step,
)
from lockgate.core.train.plan import LANDINGS_A_LEVEL, plan
from lockgate.services.train.simulator import (
    Planner,
    Run,
    Scenario,
    Simulated,
    World,
    chain_throughput,
    serial_throughput,
    simulate,
)

pytestmark = pytest.mark.unmeasured

CHECKED = 500
SOAKED = 10_000
PART = 100


def some(random: Random, most: float) -> float:
    """Most worlds have only some of the troubles."""
    return random.choice((0.0, 0.0, random.uniform(0, most)))


def a_world(random: Random) -> Scenario:
    return Scenario(
        changes=random.randint(1, 16),
        window=random.randint(1, 6),
        batch=random.choice((1, 1, 2, 3, 5, 8)),
        backlog=random.randint(1, 16),
        endless=False,
        failure_rate=some(random, 0.6),
        early=random.random() < 0.5,
        spread=random.choice((0.0, 0.5)),
        pair_rate=some(random, 0.4),
        conflict_rate=some(random, 0.4),
        depends_rate=some(random, 0.4),
        any_priority=random.random() < 0.5,
        move_rate=some(random, 0.05),
        red_rate=some(random, 0.5),
        rewind_rate=some(random, 0.3),
        kill_rate=some(random, 0.1),
    )


def most_overtaken(scenario: Scenario, done: Simulated, priority: int) -> int:
    """What level and age allow, and the train that was under way, whenever it had to start anew."""
    train = scenario.window * scenario.batch * (1 + done.moves)
    return LANDINGS_A_LEVEL * (priority - 1) + train


def keeps_its_promises(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a simulation
    scenario = a_world(random)

    done = simulate(scenario, random.random)

    assert done.broken_promises == (), (seed, scenario)
    ended = [task for _, task in done.landed] + list(done.dropped)
    assert len(ended) == len(set(ended)) == scenario.changes, (seed, scenario)
    if not scenario.depends_rate:
        for task, times in done.overtaken.items():
            assert times <= most_overtaken(scenario, done, done.priorities[task]), (seed, task)


@pytest.mark.parametrize("part", range(CHECKED // PART))
def test_nothing_untested_lands_nobody_is_wronged_and_every_change_ends(part: int) -> None:
    for seed in range(part * PART, (part + 1) * PART):
        keeps_its_promises(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(CHECKED // PART, SOAKED // PART))
def test_the_promises_hold_in_ten_thousand_worlds(part: int) -> None:
    for seed in range(part * PART, (part + 1) * PART):
        keeps_its_promises(seed)


def test_a_world_is_the_same_for_the_same_seed() -> None:
    scenario = a_world(Random(3))  # noqa: S311 - a simulation

    one, other = (simulate(scenario, Random(7).random) for _ in range(2))  # noqa: S311 - as above

    assert one == other


# --- the watch is awake -------------------------------------------------------------------------


def lands_untested(queue: Queue) -> tuple[Step, ...]:
    steps = plan(queue)
    started = [it for it in steps if isinstance(it, StartTest)]
    return tuple(
        Land(queue.tip.commit, it.candidate.commit, it.candidate.tree, it.tasks) for it in started
    ) or tuple(steps)


def blames_at_once(queue: Queue) -> tuple[Step, ...]:
    return tuple(Drop(it.change.task, Red("it looks bad")) for it in queue.entries)


def blames_for_conflicts(queue: Queue) -> tuple[Step, ...]:
    return tuple(Drop(it.change.task, Conflict(it.change.task)) for it in queue.entries)


def sleeps(_queue: Queue) -> tuple[Step, ...]:
    return ()


def goes_round(queue: Queue) -> tuple[Step, ...]:
    return (CancelTest(queue.tip.tree),)


def has_no_patience(queue: Queue) -> tuple[Step, ...]:
    return tuple(SetAside(it.change.task, "it takes long") for it in queue.entries)


def starts_too_many(queue: Queue) -> tuple[Step, ...]:
    return plan(replace(queue, window=9))


@pytest.mark.parametrize(
    ("planner", "complaint"),
    [
        (lands_untested, "m0 landed without a test of its tree"),
        (blames_at_once, "c0 was dropped for what others did"),
        (blames_for_conflicts, "c0 was dropped for what others did"),
        (sleeps, "3 changes wait for nothing"),
        (goes_round, "3 changes never end"),
        (has_no_patience, "c0 was set aside: it takes long"),
        (starts_too_many, "3 tests run at once"),
    ],
)
def test_a_planner_that_breaks_a_promise_is_found_out(planner: Planner, complaint: str) -> None:
    scenario = Scenario(changes=3, window=2, backlog=3, endless=False)
    run = Run.begun(World(scenario, Random(1).random), planner)  # noqa: S311 - a simulation

    run.play()

    assert run.broken_promises[0] == complaint


# --- how fast -----------------------------------------------------------------------------------


def times_chain(
    changes: int, failure_rate: float, window: int, *, batch: int = 1, early: bool = False
) -> float:
    scenario = Scenario(
        changes=changes, failure_rate=failure_rate, window=window, batch=batch, early=early
    )
    done = simulate(scenario, Random(1).random)  # noqa: S311 - a simulation
    assert done.broken_promises == ()
    return done.throughput / chain_throughput(failure_rate, window)


def test_the_formulas_are_those_of_the_textbook() -> None:
    assert serial_throughput(0.1) == pytest.approx(0.9)
    assert chain_throughput(0.0, 8) == 8
    assert round(chain_throughput(0.1, 8), 2) == 5.13
    assert round(chain_throughput(0.01, 8), 2) == 7.65


def test_a_train_of_one_is_the_serial_queue() -> None:
    done = simulate(Scenario(changes=200, window=1, failure_rate=0.2), Random(1).random)  # noqa: S311 - a simulation

    assert done.throughput == pytest.approx(len(done.landed) / 200, rel=0.02)


@pytest.mark.parametrize(("window", "failure_rate"), [(2, 0.3), (4, 0.1), (8, 0.0), (8, 0.3)])
def test_the_train_is_as_fast_as_a_chain(window: int, failure_rate: float) -> None:
    assert times_chain(300, failure_rate, window) >= 0.9


def test_it_is_faster_when_failures_show_early() -> None:
    assert times_chain(800, 0.1, 8, early=True) >= 1.2


def test_it_is_twice_as_fast_with_batches_where_few_fail() -> None:
    assert times_chain(1_000, 0.01, 8, batch=8) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("window", range(2, 9))
@pytest.mark.parametrize("failure_rate", [0.0, 0.01, 0.05, 0.1, 0.2, 0.3])
def test_the_train_is_as_fast_as_a_chain_at_length(window: int, failure_rate: float) -> None:
    assert times_chain(6_000, failure_rate, window) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("failure_rate", [0.1, 0.2, 0.3])
def test_it_is_a_quarter_faster_when_failures_show_early_at_length(failure_rate: float) -> None:
    assert times_chain(6_000, failure_rate, 8, early=True) >= 1.25


@pytest.mark.slow
@pytest.mark.parametrize("batch", [4, 8, 16])
def test_it_is_twice_as_fast_with_batches_at_length(batch: int) -> None:
    assert times_chain(6_000, 0.01, 8, batch=batch) >= 2
