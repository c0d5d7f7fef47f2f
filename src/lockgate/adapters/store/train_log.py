"""What the merge train remembers, in the same database as the tasks."""

import json
from collections.abc import Sequence
from typing import cast

from msgspec.structs import replace

from lockgate.adapters.store import sql
from lockgate.adapters.store.database import Database, Run
from lockgate.adapters.store.json_forms import Fields, Row, damaged, fields_of, items_of
from lockgate.adapters.store.rows import Values, storable
from lockgate.core.model.facts import canonical
from lockgate.core.model.task import TaskId
from lockgate.core.train.model import (
    Broken,
    Built,
    Candidate,
    Change,
    Commit,
    Conflict,
    Green,
    Red,
    Result,
    Tree,
)
from lockgate.errors import Overtaken
from lockgate.ports import Landing


class SqlTrainLog:
    """The `TrainLog` of ports. Each method that writes is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def candidates(self, target: str) -> tuple[Candidate, ...]:
        return tuple(_candidate(row) for row in self._rows(sql.CANDIDATES, target=target))

    def add_candidate(self, target: str, it: Candidate) -> None:
        row: Values = {**_key(target, it), "outcome": _outcome_to_json(it.outcome)}
        self._write((sql.PUT_CANDIDATE, row))

    def drop_candidates(self, target: str, them: Sequence[Candidate]) -> None:
        self._write(*((sql.DROP_CANDIDATE, _key(target, it)) for it in them))

    def results(self, target: str, rules: str) -> dict[Tree, Result]:
        found = (_fields(row) for row in self._results(target, rules))
        return {Tree(it.text("tree")): _result(it) for it in found}

    def proof(self, target: str, rules: str, tree: Tree) -> str:
        found = (_fields(row) for row in self._results(target, rules))
        return next((it.text("proof") for it in found if it.text("tree") == tree), "")

    def put_result(
        self, target: str, rules: str, tree: Tree, result: Result, proof: str = ""
    ) -> None:
        row: Values = {
            "target": target,
            "rules": rules,
            "tree": tree,
            "result": type(result).__name__.lower(),
            "said": _said(result),
            "proof": proof,
        }
        self._write((sql.PUT_TRAIN_RESULT, row))

    def forget_unjudged(self, target: str) -> None:
        self._write((sql.FORGET_UNJUDGED, {"target": target}))

    def drop_results(self, target: str, keep: Sequence[Tree]) -> None:
        known = (_fields(row).text("tree") for row in self._rows(sql.TRAIN_TREES, target=target))
        gone: list[Values] = [
            {"target": target, "tree": tree} for tree in known if tree not in set(keep)
        ]
        self._write(*((sql.DROP_TRAIN_RESULTS, row) for row in gone))

    def raise_epoch(self) -> int:
        raised = list[int]()

        def work(run: Run) -> None:
            raised.append(_whole(run(sql.RAISE_EPOCH, {}).fetchone(), "epoch"))

        self._database.write(work)
        return raised[-1]

    def check_epoch(self, epoch: int) -> None:
        [row] = self._rows(sql.EPOCH)
        if _whole(row, "epoch") != epoch:
            raise Overtaken

    def intend(self, target: str, it: Landing, time: float) -> Landing:
        meant = replace(it, time=time, seconds=self._seconds(target, it.tree))
        row: Values = storable(
            {
                "target": target,
                "time": time,
                "expected": it.expected,
                "commit_id": it.commit,
                "tree": it.tree,
                "tasks": canonical(it.tasks),
                "changes": len(it.tasks),
                "epoch": it.epoch,
                "seconds": meant.seconds,
            }
        )
        numbers = list[int]()

        def work(run: Run) -> None:
            _hold_epoch(run, it.epoch)
            numbers.append(_whole(run(sql.INSERT_LANDING, row).fetchone(), "number"))

        self._database.write(work)
        return replace(meant, number=numbers[-1])

    def settle(self, target: str, number: int, *, landed: bool, epoch: int = 0) -> None:
        row: Values = {"target": target, "number": number, "landed": int(landed)}

        def work(run: Run) -> None:
            _hold_epoch(run, epoch)
            run(sql.SETTLE_LANDING, row)

        self._database.write(work)

    def keep_evidence(self, target: str, number: int, evidence: str) -> None:
        row: Values = {"target": target, "number": number, "evidence": evidence}
        self._write((sql.KEEP_EVIDENCE, row))

    def evidence(self, target: str) -> dict[Commit, str]:
        found = (
            _fields({"target": target, **it}) for it in self._rows(sql.EVIDENCE, target=target)
        )
        return {Commit(it.text("commit_id")): it.text("evidence") for it in found}

    def open_landings(self, target: str) -> tuple[Landing, ...]:
        return tuple(_landing(row) for row in self._rows(sql.OPEN_LANDINGS, target=target))

    def landed(self, target: str, before: float) -> int:
        [row] = self._rows(sql.LANDED, target=target, before=before)
        return int(str(row["n"]))

    def landed_last(self, target: str, limit: int) -> tuple[Landing, ...]:
        found = self._rows(sql.LANDED_LAST, target=target, limit=limit)
        return tuple(_landing(row) for row in found)

    def landing_of(self, commit: Commit) -> Landing | None:
        found = self._rows(sql.LANDED_COMMIT, commit_id=commit)
        return _landing(found[0]) if found else None

    def _seconds(self, target: str, tree: Tree) -> float:
        """What the gates of the newest proof took together."""
        found = self._rows(sql.PROOFS_OF, target=target, tree=tree)
        return max((_took(str(row["proof"])) for row in found), default=0.0)

    def _results(self, target: str, rules: str) -> Sequence[Row]:
        return self._rows(sql.TRAIN_RESULTS, target=target, rules=rules)

    def _rows(self, statement: str, **values: str | float) -> Sequence[Row]:
        return self._database.read(statement, dict(values))

    def _write(self, *statements: tuple[str, Values]) -> None:
        def work(run: Run) -> None:
            for statement, values in statements:
                run(statement, storable(values))

        if statements:
            self._database.write(work)


def _hold_epoch(run: Run, epoch: int) -> None:
    if run(sql.HOLD_EPOCH, {"epoch": epoch}).fetchone() is None:
        raise Overtaken


def _whole(row: Row | None, name: str) -> int:
    return Fields("the train", row or {}).whole(name)


def _fields(row: Row) -> Fields:
    return Fields(f"the train of {row.get('target')!r}", row)


def _key(target: str, it: Candidate) -> Values:
    changes = [[change.task, change.commit] for change in it.changes]
    return {"target": target, "onto": it.onto, "changes": canonical(changes)}


def _candidate(row: Row) -> Candidate:
    it = _fields(row)
    pairs = [items_of(it.where, pair) for pair in items_of(it.where, it.json("changes"))]
    changes = tuple(Change(TaskId(str(pair[0])), Commit(str(pair[1]))) for pair in pairs)
    return Candidate(Commit(it.text("onto")), changes, _outcome_from_json(it))


def _outcome_to_json(outcome: Built | Conflict) -> str:
    match outcome:
        case Built(commit, tree):
            return canonical({"commit": commit, "tree": tree})
        case Conflict(task, others, files):
            return canonical({"task": task, "others": others, "files": files})


def _outcome_from_json(it: Fields) -> Built | Conflict:
    said = fields_of(f"{it.where}, outcome", it.json("outcome"))
    if said.has("commit"):
        return Built(Commit(said.text("commit")), Tree(said.text("tree")))
    others = tuple(TaskId(str(at)) for at in said.listed("others"))
    files = tuple(str(at) for at in said.listed("files"))
    return Conflict(TaskId(said.text("task")), others, files)


def _said(result: Result) -> str:
    match result:
        case Green():
            return ""
        case Red(evidence):
            return evidence
        case Broken(why):
            return why


def _result(it: Fields) -> Result:
    match it.text("result"):
        case "green":
            return Green()
        case "red":
            return Red(it.text("said"))
        case "broken":
            return Broken(it.text("said"))
        case unknown:
            raise damaged(it.where, f"there is no result {unknown!r}")


def _landing(row: Row) -> Landing:
    it = _fields(row)
    tasks = cast("list[str]", json.loads(it.text("tasks")))  # as intend wrote it
    return Landing(
        number=it.whole("number"),
        expected=Commit(it.text("expected")),
        commit=Commit(it.text("commit_id")),
        tree=Tree(it.text("tree")),
        tasks=tuple(TaskId(task) for task in tasks),
        epoch=it.whole("epoch"),
        time=it.real("time"),
        seconds=it.real("seconds"),
    )


def _took(proof: str) -> float:
    passed = cast("list[dict[str, dict[str, float]]]", json.loads(proof)) if proof else []
    return sum(it["proof"]["seconds"] for it in passed)
