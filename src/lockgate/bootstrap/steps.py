"""Puts together what runs a task's steps."""

from lockgate.adapters.gate_commands import CommandGates
from lockgate.adapters.reports import read_reports
from lockgate.adapters.system import alone, wait
from lockgate.bootstrap.app import App
from lockgate.services.gates.steps import Steps, StepSandbox


def steps_of(it: App) -> Steps:
    sandbox = StepSandbox(
        home=it.home,
        workspaces=it.workspaces,
        gates=CommandGates(read_reports, it.home),
        configuration=it.configuration,
        delay=wait,
    )
    return Steps(home=it.home, coordinator=it.coordinator, sandbox=sandbox, alone=alone)
