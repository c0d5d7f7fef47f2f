"""Tells how gates fare while they run."""

import threading
from dataclasses import dataclass, field

from lockgate.core.model.gates import Gate
from lockgate.core.model.results import SingleGateResult
from lockgate.faces import words
from lockgate.faces.cli import gate_words
from lockgate.faces.cli.output import Terminal, echo, lively, terminal
from lockgate.services.gates.commit_check import Case, Judged, Noted, judged


@dataclass(slots=True)
class Teller:
    """One line a gate as it gets its result; on a terminal also which ones are at it now.

    Made by whoever runs the command: the threads that it is told from know no terminal.
    """

    case: Case
    noted: Noted
    quiet: bool
    _to: Terminal | None = field(default_factory=terminal)
    _lively: bool = field(default_factory=lively)
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
            echo(words.safe("\n".join(gate_words.judged_lines(found, width))), to=self._to)

    def _progress(self) -> None:
        self._clear()
        if self._now and self._lively:
            self._draw(words.one_line(f"▸ {', '.join(self._now)} …"))

    def _clear(self) -> None:
        if self._lively:
            self._draw("\r\x1b[K")

    def _draw(self, text: str) -> None:
        echo(text, err=True, nl=False, to=self._to)
