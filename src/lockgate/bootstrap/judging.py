"""Puts together what runs gates, over any home."""

from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.adapters.clock import SystemChance, wait
from lockgate.adapters.config.when import CelConditions
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.ports import GateRuns
from lockgate.services.gates.runner import GateRunner, Wrapping

if TYPE_CHECKING:
    from lockgate.services.gates.differential import DifferentialJudge
    from lockgate.services.gates.wrappers import WrappedCommands


def gate_runner(home: Path, workspaces: GitWorkspaces, gates: GateRuns) -> GateRunner:
    return GateRunner(
        home=home,
        workspaces=workspaces,
        gates=gates,
        conditions=CelConditions(),
        delay=wait,
        wrapping=Wrapping(
            lambda it: _wrapped_commands(home, workspaces, gates).edited(it),
            lambda it, gate, found, own, patience: _wrapped_commands(
                home, workspaces, gates
            ).compared(it, gate, found, own, patience),
        ),
        differential=lambda it, gate, cancelled: _differential_judge(
            home, workspaces, gates
        ).result(it, gate, cancelled),
    )


def _wrapped_commands(home: Path, workspaces: GitWorkspaces, gates: GateRuns) -> "WrappedCommands":
    from lockgate.adapters.workspaces.blending import GitTrees
    from lockgate.services.gates.wrappers import WrappedCommands

    return WrappedCommands(home=home, workspaces=workspaces, trees=GitTrees(home), gates=gates)


def _differential_judge(
    home: Path, workspaces: GitWorkspaces, gates: GateRuns
) -> "DifferentialJudge":
    """Imported here because only a differential gate needs it, and it is slow to load."""
    from lockgate.adapters.measurements import FileMeasurements
    from lockgate.adapters.test_sources import FileTestSources
    from lockgate.adapters.workspaces.blending import GitTrees
    from lockgate.services.gates.differential import DifferentialJudge

    return DifferentialJudge(
        home=home,
        workspaces=workspaces,
        trees=GitTrees(home),
        gates=gates,
        sources=FileTestSources(),
        measurements=FileMeasurements(home / "measurements"),
        chance=SystemChance(),
    )
