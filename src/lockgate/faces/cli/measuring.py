"""The commands of a repository on its base, as `init` has them run."""

import sys
from collections.abc import Callable

import click

from lockgate.bootstrap import App
from lockgate.bootstrap.spot_check import spot_checking
from lockgate.core.config.baseline import Baseline
from lockgate.errors import LockgateError
from lockgate.faces import words
from lockgate.faces.cli.interrupting import interruptible
from lockgate.faces.cli.output import echo
from lockgate.ports import Project
from lockgate.services.gates.commit_check import Measuring, commands_of, on_base


def measured(it: App, project: Project, text: str, base: str, times: int) -> tuple[Baseline, ...]:
    """What the commands come to on base; none where it has no commit, or they cannot be run."""
    commit = it.projects.repository.commit_of(project, base)
    if commit is None:
        return ()
    evaluation = on_base(project, it.configuration, text, (base, commit))

    def work(cancelled: Callable[[], bool]) -> tuple[Baseline, ...]:
        with spot_checking(project, evaluation.task) as bench:
            measuring = Measuring(
                runner=bench.check.runner, noted=bench.noted, cancelled=cancelled, say=_say
            )
            return measuring.baselines(evaluation, times)

    if not commands_of(evaluation.settings):
        return ()
    try:
        return interruptible(work)
    except LockgateError as error:
        echo(f"note: the commands were not run on {base}: {words.one_line(str(error))}", err=True)
        return ()


def _say(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"▸ {words.one_line(text)}", err=True)
