"""Who is told what, and when: once each, whatever crashes in between."""

from datetime import UTC
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, field

from lockgate.core.notices.hours import Hours, is_quiet
from lockgate.core.notices.plan import (
    FORGET,
    NEVER,
    REMINDERS,
    RETRIES,
    SETTLE,
    TOGETHER,
    Call,
    Entry,
    Plan,
    Rules,
    Seen,
    Target,
    delivered,
    not_delivered,
    plan,
)

ME = Target(name="me")
HOOK = Target(name="hook", each=True)
RULES = Rules(kinds=frozenset({"approve", "red-tip"}), urgent=frozenset({"red-tip"}))


def a_call(key: str = "t1:4:approve", kind: str = "approve", **more: object) -> Call:
    return Call(key=key, kind=kind, project="p", title=f"tell {key}", **more)  # type: ignore[arg-type]  # a test's own words


class Desk(Struct):
    """Carries plans out, as the service does, on a ledger that outlives a crash."""

    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    ledger: dict[tuple[str, str, int], Entry] = field(
        default_factory=dict[tuple[str, str, int], Entry]
    )
    targets: tuple[Target, ...] = (ME,)
    rules: Rules = RULES
    told: list[tuple[float, str, tuple[str, ...]]] = field(
        default_factory=list[tuple[float, str, tuple[str, ...]]]
    )
    down: bool = False

    def look(self, now: float) -> Plan:
        return plan(
            Seen(
                calls=tuple(self.calls.values()),
                ledger=tuple(self.ledger.values()),
                targets=self.targets,
                rules={"p": self.rules},
                now=now,
                zone=UTC,
            )
        )

    def turn(self, now: float, crash: int = 9) -> float:
        """`crash`: before the ledger is written (0), or before anything is sent (1)."""
        it = self.look(now)
        if crash == 0:
            return it.again
        for entry in it.drop:
            del self.ledger[entry.place]
        for entry in it.put:
            self.ledger[entry.place] = entry
        for send in it.send if crash > 1 else ():
            if not self.down:
                self.told.append((now, send.target, tuple(at.key for at in send.calls)))
            for entry in send.entries:
                ended = not_delivered if self.down else delivered
                self.ledger[entry.place] = ended(entry, now)
        return self.look(now).again

    def until(self, now: float, end: float) -> float:
        """From turn to turn, as the plan itself asks for them."""
        while now <= end:
            again = self.turn(now)
            assert again > now or again == NEVER
            now = max(now, again)
        return end

    def keys(self, target: str = "me") -> list[str]:
        return [key for _, name, keys in self.told for key in keys if name == target]


def test_a_need_is_told_once_it_has_settled() -> None:
    desk = Desk(calls={"a": a_call()})

    desk.until(0.0, SETTLE - 1)
    assert desk.told == []
    desk.until(SETTLE, SETTLE)

    assert desk.told == [(SETTLE, "me", ("t1:4:approve",))]


def test_a_need_that_is_gone_before_it_has_settled_is_never_told() -> None:
    desk = Desk(calls={"a": a_call()})
    desk.turn(0.0)
    desk.calls.clear()

    desk.until(10.0, 10_000.0)

    assert desk.told == []
    assert desk.ledger == {}


def test_needs_that_come_together_are_one_message_for_people_and_one_each_for_a_program() -> None:
    desk = Desk(targets=(ME, HOOK))
    for number in range(5):
        desk.calls[str(number)] = a_call(f"t{number}:1:approve")
        desk.turn(number * 3.0)

    desk.until(15.0, 200.0)

    people = [keys for _, name, keys in desk.told if name == "me"]
    assert [len(keys) for keys in people] == [5]
    assert sorted(len(keys) for _, name, keys in desk.told if name == "hook") == [1] * 5


def test_the_first_of_many_needs_waits_for_the_others_no_longer_than_a_minute() -> None:
    desk = Desk()
    for number in range(30):
        desk.calls[str(number)] = a_call(f"t{number}:1:approve")
        desk.turn(number * 10.0)

    assert desk.told[0][0] <= TOGETHER


def test_a_kind_that_nobody_asked_for_is_not_told() -> None:
    desk = Desk(calls={"a": a_call("t1:1:yours", "yours")})

    desk.until(0.0, 10_000.0)

    assert desk.told == []


def test_a_target_that_names_kinds_and_projects_is_told_of_those_alone() -> None:
    mine = Target(name="me", kinds=frozenset({"stuck"}), projects=frozenset({"p"}))
    theirs = Target(name="other", kinds=frozenset({"stuck"}), projects=frozenset({"q"}))
    desk = Desk(targets=(mine, theirs), calls={"a": a_call(), "b": a_call("t:1:stuck", "stuck")})

    desk.until(0.0, 1000.0)

    assert desk.told == [(SETTLE, "me", ("t:1:stuck",))]


def test_what_stays_is_reminded_of_twice() -> None:
    desk = Desk(calls={"a": a_call()}, rules=Rules(kinds=RULES.kinds, remind=3600.0))

    desk.until(0.0, 1e6)

    assert [at for at, _, _ in desk.told] == [SETTLE, SETTLE + 3600, SETTLE + 7200]


def test_what_is_told_once_and_does_not_last_is_not_reminded_of() -> None:
    once = a_call("digest:2026-01-01", "approve", lasts=False)
    desk = Desk(calls={"a": once}, rules=Rules(kinds=RULES.kinds, remind=60.0))

    desk.until(0.0, 1e5)

    assert [at for at, _, _ in desk.told] == [0.0]


def test_what_comes_back_is_told_again_only_when_it_was_gone_for_long() -> None:
    desk = Desk(calls={"a": a_call("p:red-tip", "red-tip")})
    desk.until(0.0, 100.0)
    call = desk.calls.pop("a")
    desk.turn(200.0)
    desk.calls["a"] = call
    desk.until(300.0, 900.0)
    assert len(desk.told) == 1

    del desk.calls["a"]
    desk.turn(1000.0)
    desk.turn(1001.0 + FORGET)
    desk.calls["a"] = call
    desk.until(1002.0 + FORGET, 2000.0 + FORGET)

    assert len(desk.told) == 2


def test_a_receiver_that_is_down_gets_it_by_five_more_tries_and_then_it_is_given_up() -> None:
    desk = Desk(targets=(HOOK,), calls={"a": a_call()}, down=True)
    tried: list[float] = []
    now = 0.0
    while now < 1e6:
        before = sum(it.tries for it in desk.ledger.values())
        again = desk.turn(now)
        tried += [now] if sum(it.tries for it in desk.ledger.values()) > before else []
        now = again

    assert [b - a for a, b in pairwise(tried)] == list(RETRIES)
    assert [it.failed for it in desk.ledger.values()] == [True]


def test_a_receiver_that_comes_back_within_the_day_gets_what_is_still_so() -> None:
    desk = Desk(targets=(HOOK,), calls={"a": a_call()}, down=True)
    desk.until(0.0, 3600.0)
    desk.down = False

    desk.until(3600.0, 90_000.0)

    assert desk.keys("hook") == ["t1:4:approve"]


QUIET = Rules(kinds=RULES.kinds, urgent=RULES.urgent, quiet=Hours(1320, 420))


def test_in_quiet_hours_only_what_is_urgent_is_told_and_the_rest_when_they_are_over() -> None:
    late = 23 * 3600.0
    calls = {"a": a_call(), "b": a_call("p:red-tip", "red-tip")}
    desk = Desk(calls=calls, rules=QUIET)

    desk.until(late, late + 86_400)

    assert desk.told[0] == (late + SETTLE, "me", ("p:red-tip",))
    assert desk.told[1] == (31 * 3600.0, "me", ("t1:4:approve",))


LIVES = st.lists(
    st.tuples(st.floats(0, 90_000), st.floats(0, 50_000), st.sampled_from(("approve", "red-tip"))),
    max_size=6,
)


@given(LIVES, st.lists(st.tuples(st.floats(0, 140_000), st.integers(0, 1)), max_size=12))
def test_each_need_is_told_once_and_reminded_of_twice_however_often_we_crash(
    lives, crashes
) -> None:
    desk = Desk(rules=Rules(kinds=QUIET.kinds, urgent=QUIET.urgent, quiet=QUIET.quiet, remind=9e3))
    begins = {n: (start, start + length, kind) for n, (start, length, kind) in enumerate(lives)}
    times = sorted({it for start, end, _ in begins.values() for it in (start, end)} | {2e5})
    dies = sorted(crashes)
    now = 0.0
    while now < 2e5:
        desk.calls = {
            str(n): a_call(f"t{n}:1:{kind}", kind)
            for n, (start, end, kind) in begins.items()
            if start <= now < end
        }
        died = bool(dies) and dies[0][0] <= now
        again = desk.turn(now, dies.pop(0)[1] if died else 9)
        now = now + 1.0 if died else min(again, next(it for it in (*times, 3e5) if it > now))

    for n, (start, end, kind) in begins.items():
        told = [at for at, _, keys in desk.told if f"t{n}:1:{kind}" in keys]
        assert len(told) <= 1 + REMINDERS
        assert all(start + SETTLE <= at < end for at in told)
        assert all(kind == "red-tip" or not is_quiet(at, QUIET.quiet, UTC) for at in told)
        if end - start > 40_000:  # longer than any quiet night, and than every crash
            assert told
