"""The merge queue as a drawing: cars from the target's tip to the right, each with its gates.

Shape says the same as colour: dashed is set aside, an octagon is failing, a lock is held.
"""

import time
from html import escape
from urllib.parse import quote

from markupsafe import Markup

from lockgate.faces.web.look import span
from lockgate.faces.words.task import one_line
from lockgate.services.train.board import Car, TrainBoard

WIDTH, HEIGHT, GAP, TOP = 196, 104, 34, 26
CUT = 12  # of an octagon's corners
TEXT = 21  # characters that fit into a car
ASIDE = frozenset({"failing", "conflict", "waiting"})
STANDINGS = {
    "tested": "tested, lands next",
    "testing": "being tested",
    "next": "tested next",
    "queued": "in the queue",
    "failing": "failing",
    "conflict": "in conflict",
    "waiting": "waits",
    "held": "waits for approval",
    "landing": "landing now",
}


def drawn(board: TrainBoard) -> Markup:
    """Empty where nothing waits."""
    if not board.cars:
        return Markup("")
    width = WIDTH * (len(board.cars) + 1) + GAP * (len(board.cars) + 1)
    told = f"The merge queue of {board.target}: {len(board.cars)} waiting"
    high = HEIGHT + TOP + 22
    size = f'viewBox="0 0 {width} {high}" width="{width}" height="{high}"'
    parts = [
        f'<svg class="train" {size} role="group" aria-label="{_text(told)}">',
        _tip(board),
        *(_car(it, board.median_seconds) for it in board.cars),
        "</svg>",
    ]
    return Markup("".join(parts))  # noqa: S704 - every text in it went through _text


def _tip(board: TrainBoard) -> str:
    return (
        f'<g transform="translate(2 {TOP})"><rect class="box good" width="{WIDTH - 60}"'
        f' height="{HEIGHT}" rx="10"/><text class="ink" x="14" y="30" font-weight="650"'
        f' font-size="15">{_text(_cut(board.target, 15))}</text><text class="faint" x="14" y="54"'
        f' font-size="13" font-family="monospace">{_text(board.tip[:8])}</text>'
        f'<text class="faint" x="14" y="78" font-size="13">{_text(board.mode)} landing</text></g>'
    )


def _car(car: Car, usual: float | None) -> str:
    x = 2 + WIDTH - 60 + GAP + (car.position - 1) * (WIDTH + GAP)
    shape = _shape(car)
    lock = _lock() if car.standing == "held" else ""
    told = f"{car.position}. {car.summary}: {STANDINGS.get(car.standing, car.standing)}"
    middle = TOP + HEIGHT // 2
    return (
        f'<path class="rule" stroke-width="2" d="M{x - GAP + 2} {middle}h{GAP - 6}"/>'
        f'<a href="/t/{quote(car.task)}" aria-label="{_text(told)}">'
        f'<g transform="translate({x} {TOP})">{shape}{lock}'
        f'<text class="faint" x="12" y="-8" font-size="12">#{car.position}</text>'
        f'<text class="ink" x="12" y="26" font-weight="600" font-size="14">'
        f"{_text(_cut(car.summary, TEXT - 5 if lock else TEXT))}</text>"
        f'<text class="faint" x="12" y="47" font-size="12.5">'
        f"{_text(_cut(STANDINGS.get(car.standing, car.standing), TEXT + 6))}</text>"
        f"{_gates(car)}"
        f'<text class="faint" x="12" y="{HEIGHT - 9}" font-size="12">'
        f"{_text(_time(car, usual))}</text></g></a>"
    )


def _shape(car: Car) -> str:
    w, h, c = WIDTH, HEIGHT, CUT
    if car.standing in {"failing", "conflict"}:
        d = f"M{c} 0H{w - c}L{w} {c}V{h - c}L{w - c} {h}H{c}L0 {h - c}V{c}Z"
        return f'<path class="box warn aside" d="{d}"/>'
    kind = " aside" if car.standing in ASIDE else ""
    warn = " warn" if car.standing == "held" else " good" if car.standing == "tested" else ""
    return f'<rect class="box{kind}{warn}" width="{w}" height="{h}" rx="10"/>'


def _lock() -> str:
    return (
        f'<g transform="translate({WIDTH - 26} 10)" aria-hidden="true"><rect class="ink" y="6"'
        ' width="14" height="10" rx="2"/><path d="M3 7V4a4 4 0 0 1 8 0v3" fill="none"'
        ' stroke="currentColor" stroke-width="2"/></g>'
    )


def _gates(car: Car) -> str:
    """A segment for each gate, filled as it passed."""
    if not car.gates:
        return ""
    whole = WIDTH - 24
    each = (whole - 4 * (len(car.gates) - 1)) / len(car.gates)
    return "".join(
        f'<rect class="seg {_text(it.state)}" x="{12 + n * (each + 4):.1f}" y="60"'
        f' width="{each:.1f}" height="12" rx="3"><title>{_text(it.gate)}: {_text(it.state)}'
        "</title></rect>"
        for n, it in enumerate(car.gates)
    )


def _time(car: Car, usual: float | None) -> str:
    started = next((it.started for it in car.gates if it.state == "running" and it.started), 0.0)
    parts: list[str] = []
    if started:
        of = f" of {span(usual)}" if usual else ""
        parts.append(f"{span(max(0.0, time.time() - started))}{of}")
    if car.eta is not None:
        parts.append(f"lands in {span(max(0.0, car.eta - time.time()))}")
    why = "open it to let it land" if car.standing == "held" else car.why
    return ", ".join(parts) or _cut(why, TEXT + 6)


def _cut(text: str, most: int) -> str:
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _text(text: str) -> str:
    return escape(one_line(text))
