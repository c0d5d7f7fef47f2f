"""Puts together what judges a commit with no task, no agent and no database."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lockgate.adapters.gate_commands import CommandGates
from lockgate.adapters.reports import read_reports
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.adapters.workspaces.lending import lend
from lockgate.adapters.workspaces.throw_away import throw_away_home
from lockgate.bootstrap.configuring import home_of
from lockgate.bootstrap.judging import gate_runner
from lockgate.core.model.task import Task
from lockgate.ports import Project
from lockgate.services.gates.commit_check import Noted, SpotCheck


@dataclass(frozen=True, slots=True)
class Bench:
    """Where it is judged, for as long as it is."""

    check: SpotCheck
    noted: Noted


@contextmanager
def spot_checking(
    project: Project, task: Task, environ: Mapping[str, str] = os.environ
) -> Generator[Bench]:
    with throw_away_home(home_of(environ)) as home:
        yield bench_in(GitWorkspaces(home), project, task)


def bench_in(
    workspaces: GitWorkspaces, project: Project, task: Task, kept: dict[Path, bytes] | None = None
) -> Bench:
    """In their home, which has no commit of the project but what it is lent."""
    if task.pinned:
        lend(workspaces.home, project, task.pinned)
    noted = Noted(CommandGates(read_reports, home_of(os.environ)))
    runner = replace(gate_runner(workspaces.home, workspaces, noted), kept=kept)
    return Bench(SpotCheck(workspaces, runner), noted)
