"""Puts together what runs gates, over any home."""

from pathlib import Path

from lockgate.adapters.clock import SystemChance, wait
from lockgate.adapters.config.when import CelConditions
from lockgate.adapters.measurements import FileMeasurements
from lockgate.adapters.test_sources import FileTestSources
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.adapters.workspaces.blending import GitTrees
from lockgate.ports import GateRuns
from lockgate.services.differential_gate import DifferentialJudge
from lockgate.services.gate_runner import GateRunner


def gate_runner(home: Path, workspaces: GitWorkspaces, gates: GateRuns) -> GateRunner:
    differential = DifferentialJudge(
        home=home,
        workspaces=workspaces,
        trees=GitTrees(home),
        gates=gates,
        sources=FileTestSources(),
        measurements=FileMeasurements(home / "measurements"),
        chance=SystemChance(),
    )
    return GateRunner(
        home=home,
        workspaces=workspaces,
        gates=gates,
        conditions=CelConditions(),
        delay=wait,
        differential=differential.result,
    )
