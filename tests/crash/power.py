"""Power loss on the real store: what was synced is there, of the rest anything may be missing.

A writer is recorded with strace. A seed cuts the power at some moment: of the writes that were not
synced, each is there, missing, or torn at a sector. Then the real store opens what is left.
"""

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lockgate.adapters.store.sqlite import SqliteStore
from lockgate.errors import Unavailable

ROOT = Path(__file__).parents[2]
SECTOR = 512
CALLS = "openat,pwrite64,write,ftruncate,fsync,fdatasync,unlink,unlinkat"
NAMING = frozenset({"openat", "unlink", "unlinkat"})  # those that name a file
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)", re.DOTALL)
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
ACK = re.compile(rb"ack (\S+) (\d+) (\d+)\n")


@dataclass(frozen=True)
class Op:
    """What happened to a file, in the order in which it happened."""

    kind: str  # create, write, truncate, sync, remove, settle (a directory), ack
    name: str = ""
    at: int = 0
    data: bytes = b""


@dataclass
class File:
    """As the disk has it for certain, and what was done to it since its last sync."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[Op] = field(default_factory=list)
    entered: bool = False  # its name is in the directory for certain

    def settled(self) -> None:
        for op in self.pending:
            _do(self.durable, op)
        self.pending = []


@dataclass(frozen=True)
class Ack:
    task: str
    rev: int
    seq: int


def recorded(place: Path, commits: int, *argv: str) -> list[Op]:
    """All that a writer of so many commits did to the files of its database."""
    trace, home = place / "trace", place / "home"
    home.mkdir()
    writer = (sys.executable, "-m", "tests.crash.writer", str(home), str(commits), *argv)
    recorder = ("strace", "-f", "-qq", "-xx", "-s", "10000000", "-e", f"trace={CALLS}")
    subprocess.run(
        (*recorder, "-o", str(trace), *writer),
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return list(_ops(trace, home))


def _ops(trace: Path, home: Path) -> Iterator[Op]:
    opened: dict[int, Path] = {}
    with trace.open(encoding="ascii") as lines:
        for line in lines:
            found = CALL.match(line)
            if found:
                yield from _op(found[1], found[2], int(found[3]), opened, home)


def _op(call: str, args: str, answer: int, opened: dict[int, Path], home: Path) -> Iterator[Op]:
    text = _text(args)
    if answer < 0:
        return
    if call in NAMING:
        path = Path(text.decode(errors="replace"))
        if call == "openat":
            opened[answer] = path
        if path.parent == home and (call != "openat" or "O_CREAT" in args):
            yield Op("create" if call == "openat" else "remove", path.name)
        return
    number = int(args.partition(",")[0])
    if call == "write" and number == 1:
        yield from (Op("ack", data=it[0]) for it in ACK.finditer(text))
    elif opened.get(number) == home:
        yield Op("settle")
    elif number in opened and opened[number].parent == home:
        yield from _change(call, opened[number].name, args, text)


def _change(call: str, name: str, args: str, text: bytes) -> Iterator[Op]:
    if name.endswith("-shm"):  # SQLite makes it again
        return
    if call == "pwrite64":
        yield Op("write", name, int(args.rpartition(",")[2]), text)
    elif call == "ftruncate":
        yield Op("truncate", name, int(args.rpartition(",")[2]))
    elif call in {"fsync", "fdatasync"}:
        yield Op("sync", name)


def _text(args: str) -> bytes:
    found = STRING.search(args)
    return bytes.fromhex(found[1].replace("\\x", "")) if found else b""


def cut(ops: Sequence[Op], chance: random.Random) -> tuple[dict[str, bytes], list[Ack]]:
    """The files as they may be after the power was cut at some moment, and what was promised."""
    files: dict[str, File] = {}
    acks: list[Ack] = []
    for op in ops[: chance.randrange(len(ops) + 1)]:
        _apply(files, op, acks)
    left: dict[str, bytes] = {}
    for name, file in files.items():
        if file.entered or chance.random() < 0.5:
            left[name] = _after_the_cut(file, chance)
    return left, acks


def _apply(files: dict[str, File], op: Op, acks: list[Ack]) -> None:
    match op.kind:
        case "ack":
            told = ACK.match(op.data)
            assert told
            acks.append(Ack(told[1].decode(), int(told[2]), int(told[3])))
        case "settle":
            for file in files.values():
                file.entered = True
        case "create":
            files.setdefault(op.name, File())
        case "remove":
            files.pop(op.name, None)
        case "sync":
            files[op.name].settled()
        case _:
            files[op.name].pending.append(op)


def _after_the_cut(file: File, chance: random.Random) -> bytes:
    """Each write since the last sync by itself: there, missing, or there up to some sector."""
    data = bytearray(file.durable)
    rate = chance.choice((0.0, 0.3, 0.7, 1.0))
    order = list(file.pending)
    if chance.random() < 0.5:
        chance.shuffle(order)
    for op in order:
        if chance.random() < rate:
            _do(data, op)
        elif op.kind == "write" and chance.random() < 0.5:
            sectors = chance.randrange(len(op.data) // SECTOR + 1)
            _do(data, Op("write", op.name, op.at, op.data[: sectors * SECTOR]))
    return bytes(data)


def _do(data: bytearray, op: Op) -> None:
    if len(data) < op.at:
        data.extend(bytes(op.at - len(data)))
    if op.kind == "truncate":
        del data[op.at :]
    else:
        data[op.at : op.at + len(op.data)] = op.data


def problems(place: Path, files: dict[str, bytes], acks: Sequence[Ack]) -> list[str]:
    """What the real store finds wrong with what is left; nothing was promised before the first."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, data in files.items():
        (place / name).write_bytes(data)
    try:
        store = SqliteStore(place / "lockgate.db")
    except Unavailable as error:
        return [f"all is lost: {error}"]
    try:
        found = [f"event chain broken at {it}" for it in [store.first_broken_event()] if it]
        sound = store.database.read("PRAGMA integrity_check", {})
        found += [f"damaged: {row}" for row in sound if "ok" not in row.values()]
        head = store.head()
        newest = {it.task: it for it in acks}
        for ack in newest.values():
            task = store.find(ack.task)  # type: ignore[arg-type]  # as it was printed
            if task is None or task.rev < ack.rev:
                found.append(f"{ack} is lost: {task and task.rev}")
        lost = [it for it in acks if it.seq > head]
        return [*found, *(f"{it} is not in the log, which ends at {head}" for it in lost[:1])]
    finally:
        store.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.crash.power")
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--commits", type=int, default=60)
    asked = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        ops = recorded(Path(folder), asked.commits)
        kept = 0
        for seed in range(asked.seeds):
            files, acks = cut(ops, random.Random(seed))  # noqa: S311 - a seed is to be repeated
            kept += len(acks)
            for why in problems(Path(folder) / "left", files, acks):
                bad += 1
                print(f"seed {seed}: {why}")  # noqa: T201 - a program
        print(f"{asked.seeds} cuts in {len(ops)} operations, {kept} commits promised, {bad} wrong")  # noqa: T201
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
