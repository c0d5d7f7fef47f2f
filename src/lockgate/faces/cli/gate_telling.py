"""Tells how gates fare while they run."""

import sys
import threading
from dataclasses import dataclass, field

import click

from lockgate.core.evaluation import SingleGateResult
from lockgate.core.gates import Gate
from lockgate.faces import words
from lockgate.faces.cli import gate_words
from lockgate.faces.cli.output import echo
from lockgate.services.rulebook import Case
from lockgate.services.spot_check import Judged, Noted, judged


@dataclass(slots=True)
class Teller:
    """One line a gate as it gets its result; on a terminal also which ones are at it now."""

    case: Case
    noted: Noted
    quiet: bool
    _now: list[str] = field(default_factory=list[str])
    _told: dict[str, Judged] = field(default_factory=dict[str, Judged])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, gate: Gate, result: SingleGateResult | None) -> None:
        with self._lock:
            if result is None:
                self._now.append(gate.name)
            else:
                self._now.remove(gate.name)
                self._finish(gate, result)
            self._progress()

    def in_order(self, results: tuple[SingleGateResult, ...]) -> tuple[Judged, ...]:
        return tuple(self._told[it.gate] for it in results)

    def _finish(self, gate: Gate, result: SingleGateResult) -> None:
        made = self.noted.made.get(gate.name, [])
        self._told[gate.name] = found = judged(gate, result, made)
        if not self.quiet:
            self._clear()
            width = max(len(it.name) for it in self.case.settings.gates)
            echo(words.safe("\n".join(gate_words.judged_lines(found, width))))

    def _progress(self) -> None:
        self._clear()
        if self._now and sys.stderr.isatty():
            click.echo(words.one_line(f"▸ {', '.join(self._now)} …"), err=True, nl=False)

    def _clear(self) -> None:
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", err=True, nl=False)
