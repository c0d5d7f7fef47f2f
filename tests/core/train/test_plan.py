"""The merge train's planner, in stories that anyone can read and add to: see trains/*.txt.

A story is a list of steps, with what must be so afterwards under each. A candidate is named by the
changes that its tree has, in alphabetical order: `AB` is A and B on top of main.
"""

from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.core.model.task import TaskId
from lockgate.core.train.model import (
    Broken,
    Build,
    Built,
    CancelTest,
    Candidate,
    Change,
    CheckTip,
    Commit,
    Conflict,
    Drop,
    Entry,
    Green,
    Hold,
    Land,
    Offer,
    Place,
    Queue,
    Red,
    SetAside,
    Standing,
    StartTest,
    Step,
    Tree,
)
from lockgate.core.train.plan import in_order, level, places, plan, stale

STORIES = sorted((Path(__file__).parent / "stories").glob("*.txt"))


def tree_of(content: str) -> Tree:
    return Tree("".join(sorted(set(content))) or "main")


class Yard:
    """Plays a story: each word that begins a step is a method, and every plan is carried out."""

    def __init__(self) -> None:
        self.queue = Queue(tip=Built(Commit(""), Tree("main")))
        self.landed: list[str] = []
        self.dropped: list[str] = []
        self.aside: list[str] = []
        self.clashes: list[set[str]] = []
        self.tests = 0
        self.came = 0

    def window(self, size: str) -> None:
        self.queue = replace(self.queue, window=int(size))

    def batch(self, size: str) -> None:
        self.queue = replace(self.queue, batch=int(size))

    def clash(self, one: str, other: str) -> None:
        self.clashes.append({one, other})

    def comes(self, *words: str) -> None:
        names = [it for it in words if len(it) == 1]
        after = (TaskId(names.pop()),) if "after" in words else ()
        for name in names:
            self.came += 1
            entry = Entry(
                change=Change(TaskId(name), Commit(name)),
                since=self.came,
                entered=self.queue.landed,
                priority=1 if "first" in words else 3,
                depends_on=after,
                held="not approved" if "held" in words else "",
                unjudged="unjudged" in words,
            )
            self.queue = replace(self.queue, entries=(*self.queue.entries, entry))

    def withdrawn(self, name: str) -> None:
        self._leave(name)

    def released(self, name: str) -> None:
        """Whoever looked has mended it: what could not be judged is judged again."""
        self.queue = replace(
            self.queue,
            entries=tuple(
                replace(it, held="") if it.change.task == name else it for it in self.queue.entries
            ),
            results={
                tree: result
                for tree, result in self.queue.results.items()
                if not isinstance(result, Broken)
            },
        )

    def main(self, *_is_green: str) -> None:
        self.passes("main")

    def passes(self, tree: str) -> None:
        self._answer(tree, Green())

    def fails(self, tree: str) -> None:
        self._answer(tree, Red("a test failed"))

    def shows(self, tree: str) -> None:
        """A failure, by a test that still runs."""
        red = {**self.queue.results, Tree(tree): Red("a test failed")}
        self.queue = replace(self.queue, results=red)

    def breaks(self, tree: str) -> None:
        self._answer(tree, Broken("no room on the disk"))

    def pushed(self, what: str) -> None:
        content = self.queue.tip.commit + what
        self.queue = replace(self.queue, tip=Built(Commit(f"{content}'"), tree_of(content)))

    def killed(self) -> None:
        self.queue = replace(self.queue, running=frozenset())

    def blocked(self, *words: str) -> None:
        self.queue = replace(self.queue, blocked=" ".join(words))

    def play(self, step: str) -> None:
        name, *words = step.split(" ")
        getattr(self, name)(*words)
        while steps := [it for it in plan(self.queue) if not isinstance(it, Hold)]:
            for it in steps:
                self._do(it)

    def facts(self) -> dict[str, str]:
        running = sorted(self.queue.running, key=lambda it: (it == "main", len(it), it))
        holds = [it.why for it in plan(self.queue) if isinstance(it, Hold)]
        stands = [f"{it.task} {it.standing} {it.why}".strip() for it in places(self.queue)]
        return {
            "testing": " ".join(running),
            "landed": " ".join(self.landed),
            "dropped": ", ".join(self.dropped),
            "aside": ", ".join(self.aside),
            "holds": "; ".join(holds),
            "queue": ", ".join(stands),
            "tests": str(self.tests),
        }

    def _answer(self, tree: str, result: Green | Red | Broken) -> None:
        self.queue = replace(
            self.queue,
            running=self.queue.running - {Tree(tree)},
            results={**self.queue.results, Tree(tree): result},
        )

    def _do(self, step: Step) -> None:
        match step:
            case CancelTest(tree):
                self.queue = replace(self.queue, running=self.queue.running - {tree})
            case Drop(task, reason):
                self.dropped.append(f"{task}: {_why(reason)}")
                self._leave(task)
            case SetAside(task, why):
                self.aside.append(f"{task}: {why}")
                self.queue = replace(
                    self.queue,
                    entries=tuple(
                        replace(it, held=why) if it.change.task == task else it
                        for it in self.queue.entries
                    ),
                )
            case Land():
                self._land(step)
            case Build():
                self._build(step)
            case CheckTip(built) | StartTest(built):
                self.tests += 1
                self.queue = replace(self.queue, running=self.queue.running | {built.tree})
            case Hold() | Offer():
                pytest.fail("a hold is nothing to do, and no change is offered here")

    def _land(self, step: Land) -> None:
        assert step.expected == self.queue.tip.commit
        self.landed += step.tasks
        landed = self.queue.landed + len(step.tasks)
        self.queue = replace(self.queue, tip=Built(step.commit, step.tree), landed=landed)
        for task in step.tasks:
            self._leave(task)
            self.queue = replace(
                self.queue,
                entries=tuple(
                    replace(it, depends_on=tuple(on for on in it.depends_on if on != task))
                    for it in self.queue.entries
                ),
            )

    def _build(self, step: Build) -> None:
        content = step.onto.replace("'", "")
        outcome: Built | Conflict | None = None
        for change in step.changes:
            if any({change.commit, it} in self.clashes for it in content):
                outcome = Conflict(change.task)
                break
            content += change.commit
        outcome = outcome or Built(
            Commit(step.onto + content.removeprefix(step.onto.replace("'", ""))), tree_of(content)
        )
        candidate = Candidate(step.onto, step.changes, outcome)
        assert candidate not in self.queue.candidates, "what was built is not built again"
        self.queue = replace(self.queue, candidates=(*self.queue.candidates, candidate))

    def _leave(self, name: str) -> None:
        entries = tuple(it for it in self.queue.entries if it.change.task != name)
        self.queue = replace(self.queue, entries=entries)


def _why(reason: Conflict | Red) -> str:
    return reason.evidence if isinstance(reason, Red) else "conflict"


def _steps(text: str) -> list[tuple[str, list[str]]]:
    blocks = [block.strip().splitlines() for block in text.split("\n\n") if block.strip()]
    lines = [[line for line in block if not line.startswith("#")] for block in blocks]
    return [(step, facts) for step, _rule, *facts in (block for block in lines if block)]


@pytest.mark.parametrize("path", STORIES, ids=[path.stem for path in STORIES])
def test_the_train_goes_as_it_is_told(path: Path) -> None:
    yard = Yard()

    for step, told in _steps(path.read_text(encoding="utf-8")):
        yard.play(step)

        wanted = {name: rest for name, _, rest in (line.partition(" ") for line in told)}
        shown = yard.facts()
        assert {name: shown[name] for name in wanted} == wanted, step


# --- order --------------------------------------------------------------------------------------


def an_entry(name: str, *, since: float = 0, entered: int = 0, priority: int = 3) -> Entry:
    change = Change(TaskId(name), Commit(name))
    return Entry(change=change, since=since, entered=entered, priority=priority)


@pytest.mark.parametrize(
    ("priority", "waited", "there"),
    [(3, 0, 3), (3, 9, 3), (3, 10, 2), (3, 20, 1), (3, 90, 1), (5, 39, 2), (1, 50, 1)],
)
def test_a_change_goes_one_level_up_for_ten_landings_that_it_waited(
    priority: int, waited: int, there: int
) -> None:
    entry = an_entry("A", entered=7, priority=priority)

    assert level(entry, 7 + waited) == there


def test_the_queue_is_in_order_of_level_then_age_then_name() -> None:
    entries = (
        an_entry("late", since=9, priority=1, entered=40),
        an_entry("patient", since=1, priority=5, entered=0),
        an_entry("twin-b", since=3, entered=40),
        an_entry("twin-a", since=3, entered=40),
    )
    queue = Queue(tip=Built(Commit("0"), Tree("0")), entries=entries, landed=40)

    assert [it.change.task for it in in_order(queue)] == ["patient", "late", "twin-a", "twin-b"]


# --- what may go --------------------------------------------------------------------------------


def test_candidates_that_no_train_can_use_may_go_and_suspicions_stay() -> None:
    a, b, gone = (Change(TaskId(it), Commit(it)) for it in ("A", "B", "gone"))
    on_tip = Candidate(Commit("tip"), (a,), Built(Commit("tip+A"), Tree("A")))
    behind = Candidate(Commit("tip+A"), (b,), Built(Commit("tip+AB"), Tree("AB")))
    clash = Candidate(Commit("tip"), (b,), Conflict(b.task))
    elsewhere = Candidate(Commit("old"), (a,), Built(Commit("old+A"), Tree("oldA")))
    left = Candidate(Commit("tip"), (gone,), Built(Commit("tip+gone"), Tree("gone")))
    red = Candidate(Commit("old"), (b,), Built(Commit("old+B"), Tree("oldB")))
    queue = Queue(
        tip=Built(Commit("tip"), Tree("tip")),
        entries=(an_entry("A"), an_entry("B")),
        candidates=(behind, on_tip, clash, elsewhere, left, red),
        results={Tree("oldB"): Red("a test failed")},
    )

    assert stale(queue) == (elsewhere, left)


# --- what people see ----------------------------------------------------------------------------


def test_a_conflict_shows_with_whom_and_in_which_files() -> None:
    change = Change(TaskId("A"), Commit("A"))
    conflict = Conflict(change.task, (TaskId("B"),), ("api.py",))
    queue = Queue(
        tip=Built(Commit("tip"), Tree("tip")),
        entries=(an_entry("A"),),
        candidates=(Candidate(Commit("tip"), (change,), conflict),),
    )

    assert places(queue) == (Place(change.task, Standing.CONFLICT, "B, api.py"),)
    assert plan(queue) == (Drop(change.task, conflict),)


def test_what_is_built_and_not_yet_tested_is_next() -> None:
    change = Change(TaskId("A"), Commit("A"))
    built = Built(Commit("tip+A"), Tree("A"))
    queue = Queue(
        tip=Built(Commit("tip"), Tree("tip")),
        entries=(an_entry("A"),),
        candidates=(Candidate(Commit("tip"), (change,), built),),
    )

    assert places(queue) == (Place(change.task, Standing.NEXT),)
    assert plan(queue) == (StartTest(built, (change.task,)),)


def test_a_change_that_adds_nothing_is_not_tested_twice() -> None:
    a, b = (Change(TaskId(it), Commit(it)) for it in ("A", "B"))
    first = Built(Commit("tip+A"), Tree("A"))
    same = Built(Commit("tip+AB"), Tree("A"))
    queue = Queue(
        tip=Built(Commit("tip"), Tree("tip")),
        entries=(an_entry("A"), an_entry("B")),
        candidates=(
            Candidate(Commit("tip"), (a,), first),
            Candidate(first.commit, (b,), same),
        ),
        window=1,
    )

    assert plan(queue) == (StartTest(first, (a.task,)),)


def test_an_empty_queue_has_nothing_to_do() -> None:
    queue = Queue(tip=Built(Commit("tip"), Tree("tip")))

    assert plan(queue) == ()
    assert places(queue) == ()
