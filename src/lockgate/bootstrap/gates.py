"""Puts together what runs gates and steps, over any home or for a commit alone."""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.adapters.config.when import CelConditions
from lockgate.adapters.gate_commands import CommandGates
from lockgate.adapters.reports import read_reports
from lockgate.adapters.sandbox.process import hearing
from lockgate.adapters.system import SystemChance, wait
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.adapters.workspaces.temporary import Checkouts, lend, throw_away_home
from lockgate.bootstrap.app import App
from lockgate.bootstrap.rules import base_configuration, home_of, repository_of
from lockgate.core.model.gates import CommandGate
from lockgate.core.model.task import ProjectId
from lockgate.ports import Candidate, GateRuns, Project
from lockgate.services.gates.commit_check import (
    Noted,
    Rulebook,
    SpotCheck,
    on_base,
)
from lockgate.services.gates.runner import (
    FLAKY,
    Cancelled,
    Evaluation,
    GateRunner,
    Wrapping,
    measured_as,
)
from lockgate.services.task.projects import BaseConfiguration

if TYPE_CHECKING:
    from lockgate.services.gates.differential import DifferentialJudge
    from lockgate.services.gates.wrappers import WrappedCommands
    from lockgate.services.setup.init import Initialised, Site, Wanted

Say = Callable[[str], None]


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
        flaky=lambda it, gate: _flaky_on_base(home, workspaces, it, gate),
        differential=lambda it, gate, cancelled: _differential_judge(
            home, workspaces, gates
        ).result(it, gate, cancelled),
    )


def _flaky_on_base(
    home: Path, workspaces: GitWorkspaces, it: Evaluation, gate: CommandGate
) -> frozenset[str]:
    """From the runs of base that the differential gate has kept; empty where there are none."""
    from lockgate.adapters.measurements import FileMeasurements
    from lockgate.core.differential.runs import flaky_tests

    if not it.candidate.rules:
        return frozenset()
    tree = workspaces.tree(it.project, it.candidate.rules.base_commit)
    key = (*measured_as(it, tree, gate.command), FLAKY)
    known = FileMeasurements(home / "measurements").find(key)
    return flaky_tests(*known) if known else frozenset()


def _wrapped_commands(home: Path, workspaces: GitWorkspaces, gates: GateRuns) -> "WrappedCommands":
    from lockgate.adapters.workspaces.mixed_trees import GitTrees
    from lockgate.services.gates.wrappers import WrappedCommands

    return WrappedCommands(home=home, workspaces=workspaces, trees=GitTrees(home), gates=gates)


def _differential_judge(
    home: Path, workspaces: GitWorkspaces, gates: GateRuns
) -> "DifferentialJudge":
    """Imported here because only a differential gate needs it, and it is slow to load."""
    from lockgate.adapters.measurements import FileMeasurements
    from lockgate.adapters.test_sources import FileTestSources
    from lockgate.adapters.workspaces.mixed_trees import GitTrees
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


# Puts together what judges a commit with no task, no agent and no database.


told_as_it_comes = hearing


class Bench(Struct, frozen=True):
    """Where it is judged, for as long as it is."""

    check: SpotCheck
    noted: Noted


Checking = Callable[[Candidate], AbstractContextManager[Bench]]


@contextmanager
def spot_checking(it: Candidate, environ: Mapping[str, str] = os.environ) -> Generator[Bench]:
    with throw_away_home(home_of(environ)) as home:
        yield bench_in(GitWorkspaces(home), it)


def bench_in(
    workspaces: GitWorkspaces, it: Candidate, kept: dict[Path, bytes] | None = None
) -> Bench:
    """In their home, which has no commit of the project but what it is lent."""
    if it.rules:
        lend(workspaces.home, it.project, it.rules)
    noted = Noted(CommandGates(read_reports, home_of(os.environ)))
    runner = replace(gate_runner(workspaces.home, workspaces, noted), kept=kept)
    return Bench(SpotCheck(workspaces, runner), noted)


def rehearsed(
    it: App, project: Project, asked: "tuple[Wanted, Site, Initialised]", times: int, say: Say
) -> "Callable[[Cancelled], Initialised]":
    """Sets a repository up as it was proposed, once that was tried so many times on its base."""
    from lockgate.core.discovery.commissioned import FAULTS, RUNS
    from lockgate.services.setup.init import Rehearsal

    wanted, site, proposed = asked
    do = partial(it.initialiser.init, project, proposed, site, wanted)

    def work(cancelled: Cancelled) -> "Initialised":
        if site.commit is None or times == 0 or not proposed.commands:
            return do(None)
        by = partial(on_base, project, it.configuration, where=(site.base, site.commit))
        with spot_checking(by(proposed.text).candidate) as bench:
            return do(
                Rehearsal(
                    runner=bench.check.runner,
                    noted=bench.noted,
                    cancelled=cancelled,
                    say=say,
                    evaluation=by,
                    times=max(times, RUNS) if wanted.author else times,
                    faults=FAULTS if wanted.author else 1,
                )
            )

    return work


def commissioned(
    it: App, project: Project, asked: "tuple[Wanted, Site, Initialised]", say: Say
) -> "Callable[[Cancelled], Initialised]":
    """Has an agent propose the commands, in a sandbox of its own with a checkout of base."""
    from lockgate.services.setup.commission import Commission

    wanted, site, found = asked

    def work(cancelled: Cancelled) -> "Initialised":
        where = (site.base, site.commit or "")
        candidate = on_base(project, it.configuration, found.text, where=where).candidate
        say(f"asking {wanted.author} to write the set-up")
        left = Commission(it.trial, wait).proposal(candidate, wanted.author, found.plan, cancelled)
        return it.initialiser.commissioned(project, site, wanted, left)

    return work


# Where commits are judged one after the other: what was set up for one serves the next.


MOST = 4  # that are kept


class Kept(Struct, frozen=True, eq=False):
    """A throw-away home that stays until it `goes`."""

    project: ProjectId
    workspaces: GitWorkspaces
    goes: ExitStack
    seen: dict[Path, bytes] = field(default_factory=dict[Path, bytes])


class Benches(Struct):
    """Those that nobody is at."""

    home: Path
    _idle: list[Kept] = field(default_factory=list[Kept])
    _lock: Lock = field(default_factory=Lock)
    _closed: bool = False

    @contextmanager
    def spot_checking(self, it: Candidate) -> Generator[Bench]:
        """What cannot be set up, or ends in an error, is not kept."""
        kept = self._taken(it.project.id) or _made(self.home, it.project.id)
        with ExitStack() as on_error:
            on_error.callback(kept.goes.close)
            yield bench_in(kept.workspaces, it, kept.seen)
            on_error.pop_all()
        self._keep(kept)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().goes.close()

    def _taken(self, project: ProjectId) -> Kept | None:
        with self._lock:
            found = next((it for it in self._idle if it.project == project), None)
            if found:
                self._idle.remove(found)
            return found

    def _keep(self, kept: Kept) -> None:
        with self._lock:
            self._idle.append(kept)
            while self._idle and (self._closed or len(self._idle) > MOST):
                self._idle.pop(0).goes.close()


def _made(home: Path, project: ProjectId) -> Kept:
    goes = ExitStack()
    place = goes.enter_context(throw_away_home(home))
    return Kept(project, GitWorkspaces(place, check_out=Checkouts().check_out), goes)


# Puts together what reads a repository's rules, with no database.


def rulebook(known: BaseConfiguration | None = None) -> Rulebook:
    """Over a configuration that was read before, where there is one."""
    environ = os.environ
    configuration = known or base_configuration(repository_of(home_of(environ)), environ)
    return Rulebook(configuration.repository, configuration)
