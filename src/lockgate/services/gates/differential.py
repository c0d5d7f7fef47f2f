"""The differential gate: base's tests and the change's, on both sides' code, and what that says."""

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.differential.appearance import (
    differing,
    passing,
    rounds,
    unmasked,
    wants_another_look,
)
from lockgate.core.differential.cases import named_as_in
from lockgate.core.differential.plan import (
    BASE_ALONE,
    ON_CHANGE,
    Which,
    disagreeing,
    expecting,
    how_to_see,
    opened_in,
    passed_in,
    planned,
    runs_of,
    stand_ins,
    to_keep,
    to_run,
    unfit,
    with_hosts,
)
from lockgate.core.differential.verdict import (
    Lost,
    Unjudged,
    Verdict,
    after_a_loss,
    as_result,
    judge,
    reproduced,
    to_break,
    unbelieved,
)
from lockgate.core.model.gates import DifferentialGate
from lockgate.core.model.results import Broken, Proof, SingleGateResult
from lockgate.errors import Unavailable
from lockgate.ports import Chance, GateRuns, Workspaces
from lockgate.ports.differential import Measurements, TestSources, Trees
from lockgate.services.gates.comparing import Bench, Measured, SideReader
from lockgate.services.gates.runner import FLAKY, Evaluation, measured_as
from lockgate.services.gates.strength import Ratchet

Made = dict[Which, Measured]


class DifferentialJudge(Struct, frozen=True, kw_only=True):
    home: Path
    workspaces: Workspaces
    trees: Trees
    gates: GateRuns
    sources: TestSources
    measurements: Measurements
    chance: Chance

    def result(
        self, it: Evaluation, gate: DifferentialGate, cancelled: Callable[[], bool]
    ) -> SingleGateResult:
        try:
            bench = self._bench(it, gate, cancelled)
            return self._judged(bench)
        except Unavailable as error:
            return Broken(gate.name, str(error), passing=True)

    def _bench(
        self, it: Evaluation, gate: DifferentialGate, cancelled: Callable[[], bool]
    ) -> Bench:
        compared = SideReader(self.trees, self.sources).compared(it, gate)
        sides, rules = compared.sides, compared.rules
        texts = {**compared.known(sides.candidate), **compared.known(sides.base)}
        plan = planned(sides, rules, texts, self.chance.token())
        return Bench(
            place=it.place_in(self.home, gate.name),
            workspaces=self.workspaces,
            trees=self.trees,
            gates=self.gates,
            it=it,
            gate=gate,
            compared=compared,
            plan=plan,
            watch=self.sources.watch(plan.runner),
            reporter=self.sources.reporter(plan.runner, rules.command),
            cancelled=cancelled,
        )

    def _judged(self, bench: Bench) -> SingleGateResult:
        made = self._base_alone(bench)
        why = unfit(made[Which.BASE].run, made[Which.AGAIN].run)
        if why:
            return as_result(bench.gate.name, Unjudged(why), _proof(bench, made))
        bench = _with_hosts(_with_expectations(bench, made), made)
        made |= bench.measure(to_run(bench.plan, bench.compared.sides))
        verdict = _verdict(bench, made)
        attempt = 1
        while isinstance(verdict, Lost) and not verdict.final and attempt < bench.gate.attempts:
            attempt += 1
            again = (it for it in ON_CHANGE if it in made)
            made |= bench.measure(again)
            verdict = after_a_loss(_verdict(bench, made), attempt)
        verdict = self._believed(bench, verdict)
        weighed = Ratchet(self.sources, self.chance, self.measurements).weighed(bench, verdict)
        commits = (bench.compared.base, bench.it.candidate.commit)
        shown = reproduced(weighed.verdict, how_to_see(bench.plan, *commits, bench.gate.command))
        return as_result(bench.gate.name, shown, _proof(bench, made, weighed.said))

    def _believed(self, bench: Bench, verdict: Verdict) -> Verdict:
        """After two more runs of base's tests on the change, at the same time where they may."""
        with bench.pool() as pool:
            forged = pool.submit(self._with_failures, bench, verdict)
            looked = pool.submit(_with_another_look, bench, verdict)
        found = forged.result()
        return found if isinstance(found, Lost) else looked.result()

    def _with_failures(self, bench: Bench, verdict: Verdict) -> Verdict:
        """With a failure in every test of base: none may pass."""
        tests = to_break(verdict, bench.compared.changed)
        texts = bench.compared.known(bench.compared.sides.base)
        broken, planted = self.sources.broken(texts, tests, bench.plan.nonce)
        if not planted:
            return verdict
        return unbelieved(verdict, bench.measure_broken(broken), planted)

    def _base_alone(self, bench: Bench) -> Made:
        key = self._key(bench)
        known = self.measurements.find(key)
        if known:
            return {which: Measured(run) for which, run in zip(BASE_ALONE, known, strict=True)}
        made = bench.measure(BASE_ALONE)
        tests = bench.compared.base_tests
        again = named_as_in(made[Which.BASE].run, made[Which.AGAIN].run, tests, tests)
        made[Which.AGAIN] = replace(made[Which.AGAIN], run=again)
        kept = to_keep(made[Which.BASE].run, made[Which.AGAIN].run)
        if kept:
            self.measurements.keep(key, *kept)
        apart = disagreeing(made[Which.BASE].run, made[Which.AGAIN].run)
        if apart:
            self.measurements.keep((*key, FLAKY), *apart)
        return made

    def _key(self, bench: Bench) -> tuple[str, ...]:
        """Where the change left base before the task did, the set-up may be another."""
        it, base = bench.it, bench.compared.base
        rules = it.candidate.rules
        start = rules.base_commit if rules and rules.base_commit != base else ""
        tree = self.workspaces.tree(it.project, base)
        return measured_as(it, tree, bench.gate.command, start)


def _with_another_look(bench: Bench, verdict: Verdict) -> Verdict:
    """Tests that fail twice because a run looks another way, and not on base, which has it too."""
    if not wants_another_look(verdict, bench.compared.changed):
        return verdict
    names = differing(verdict, bench.measure_disguised(Which.OF_BASE, "second"))
    for number in range(rounds(bench.gate.attempts)):
        if not names:
            return verdict
        plain = bench.measure((Which.OF_BASE,))[Which.OF_BASE].run
        again = differing(verdict, bench.measure_disguised(Which.OF_BASE, f"look{number}"))
        names = tuple(it for it in passing(plain, names) if it in again)
    return unmasked(verdict, passing(bench.measure_disguised(Which.AGAIN, "look0"), names))


def _with_expectations(bench: Bench, made: Mapping[Which, Measured]) -> Bench:
    """Files that base's tests open belong to the tests, wherever they lie."""
    compared = bench.compared
    found = (it for one in made.values() for it in opened_in(one.run))
    changed = expecting(compared.sides, compared.changed, found)
    if changed is None:
        return bench
    sides = replace(compared.sides, expected=frozenset(changed.tests))
    texts = {**compared.known(sides.candidate), **compared.known(sides.base)}
    return replace(
        bench,
        compared=replace(compared, sides=sides, changed=changed),
        plan=planned(sides, compared.rules, texts, bench.plan.nonce),
    )


def _with_hosts(bench: Bench, made: Mapping[Which, Measured]) -> Bench:
    """Canaries go among base's tests, where these are known to run."""
    compared = bench.compared
    texts = compared.known(compared.sides.base)
    passed = passed_in(made[Which.BASE].run)
    return replace(bench, plan=with_hosts(bench.plan, passed, compared.base_tests, texts))


def _verdict(bench: Bench, made: Mapping[Which, Measured]) -> Verdict:
    compared = bench.compared
    runs = runs_of(
        {which: it.run for which, it in made.items()}, stand_ins(bench.plan, compared.sides)
    )
    return judge(runs, compared.base_tests, compared.candidate_tests, compared.changed)


def _proof(bench: Bench, made: Mapping[Which, Measured], said: str = "") -> Proof:
    candidate = bench.it.candidate
    change = made.get(Which.CHANGE)
    return Proof(
        ran=(
            *(f"{bench.gate.command} ({it})" for it in Which if it in made),
            *filter(None, (said,)),
        ),
        commit=candidate.commit,
        tree=bench.workspaces.tree(candidate.project, candidate.commit),
        config_hash=candidate.config_hash,
        sandbox=change.level if change else "",
        seconds=sum(it.seconds for it in made.values()),
        tests_passed=passed_in(change.run) if change else None,
    )
