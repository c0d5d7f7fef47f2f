"""A checkout to judge and the gates that judge it, for tests that run real commands."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lockgate.adapters.gate_commands import CommandGates
from lockgate.adapters.sandbox import trouble
from lockgate.core.config.settings import SandboxLevel, SandboxSettings, Service
from lockgate.core.model.gates import CommandGate, Placement, Where
from lockgate.ports import Attempt, GateRun

WHY_NOT = trouble()
NEEDS_BUBBLEWRAP = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs bubblewrap: {WHY_NOT}")


@dataclass(frozen=True)
class Gatehouse:
    place: Path

    @property
    def checkout(self) -> Path:
        return self.place / "checkout"

    @property
    def base(self) -> Path:
        return self.place / "base.git"

    def run(
        self, services: tuple[Service, ...] = (), data: Path | None = None, **sandbox: Any
    ) -> GateRun:
        return GateRun(
            checkout=self.checkout,
            base=self.base,
            commit="c0ffee",
            tree="7ree",
            config_hash="4a54",
            sandbox=SandboxSettings(**sandbox),
            services=services,
            data=data,
        )

    def attempt(
        self,
        command: str,
        timeout: int = 60,
        services: tuple[Service, ...] = (),
        cancelled: Callable[[], bool] = lambda: False,
        **sandbox: Any,
    ) -> Attempt:
        """What it reported is then in `reports`."""
        run = self.run(services, **sandbox)
        found = CommandGates(reader=unread).attempt(gate(command, timeout), run, cancelled)
        if found.report_dir is not None:
            shutil.copytree(found.report_dir, self.place / "reports", dirs_exist_ok=True)
            shutil.rmtree(found.report_dir)
        return found

    def bare(self, command: str, timeout: int = 60, **more: Any) -> Attempt:
        return self.attempt(command, timeout, level=SandboxLevel.NONE, **more)

    def beside(self) -> set[str]:
        """What is left beside what was there before."""
        known = {"checkout", "base.git", "reports"}
        return {it.name for it in self.place.iterdir()} - known


def unread(*_: object) -> Any:
    raise AssertionError("these tests read reports themselves")


def a_gatehouse(tmp_path: Path) -> Gatehouse:
    house = Gatehouse(tmp_path / "gate, house: 1")
    for place in (house.checkout, house.base):
        place.mkdir(parents=True)
        (place / "file").write_text("as it was\n")
    return house


def gate(command: str, timeout: int = 60) -> CommandGate:
    place = Placement(serial=True, on=(Where.CHANGE,))
    return CommandGate(name="tests", place=place, command=command, timeout=timeout)
