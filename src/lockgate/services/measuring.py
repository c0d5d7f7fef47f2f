"""Runs a repository's commands on its base, some times each, and says what they come to."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lockgate.core.config.baseline import Baseline, Timed, measured
from lockgate.core.config.settings import Settings, pin
from lockgate.core.model.gates import CommandGate, Placement, Where
from lockgate.ports import Project
from lockgate.services.configuration import CONFIG, BaseConfiguration
from lockgate.services.gate_runner import Cancelled, Evaluation, GateRunner
from lockgate.services.rulebook import nobodys_task
from lockgate.services.spot_check import Noted

ONCE = Placement(serial=True, on=(Where.CHANGE,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """Over a home that is thrown away; `say` tells people what is being run."""

    runner: GateRunner
    noted: Noted
    cancelled: Cancelled
    say: Callable[[str], None]

    def baselines(self, it: Evaluation, times: int) -> tuple[Baseline, ...]:
        return tuple(self._baseline(it, gate, times) for gate in commands_of(it.settings))

    def _baseline(self, it: Evaluation, gate: CommandGate, times: int) -> Baseline:
        alone = replace(it, settings=replace(it.settings, gates=(gate,)))
        runs: list[Timed] = []
        for number in range(times):
            self.say(f"{gate.name}, run {number + 1} of {times}: {gate.command}")
            result = self.runner.results(alone, self.cancelled)[0]
            runs.append(Timed(result, sum(it.seconds for it in self.noted.made.pop(gate.name, []))))
        return measured(gate.name, gate.command, tuple(runs))


def on_base(
    project: Project, configuration: BaseConfiguration, text: str, where: tuple[str, str]
) -> Evaluation:
    """The base branch at its commit, by a configuration that is not there yet."""
    branch, commit = where
    settings = configuration.load(text, CONFIG)
    pinned = replace(pin(settings, commit, configuration.digest(settings)), base=branch)
    return Evaluation(project, nobodys_task(project, settings, commit, pinned), (), settings)


def commands_of(settings: Settings) -> tuple[CommandGate, ...]:
    """What `[commands]` has, each as a gate that is tried once."""
    said = {"test": settings.commands.test, "typecheck": settings.commands.typecheck}
    return tuple(
        CommandGate(name=name, place=ONCE, command=command, attempts=1)
        for name, command in said.items()
        if command.strip()
    )
