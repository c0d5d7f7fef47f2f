"""What a host of a fleet offers: its agents with their logins; by which rules it does a job."""

import platform
from contextlib import suppress

from lockgate import __version__
from lockgate.adapters.config.load import load_config
from lockgate.adapters.user_files import serving_of
from lockgate.bootstrap.app import App
from lockgate.bootstrap.hosts import start_of
from lockgate.core.config.settings import Settings, known_agents
from lockgate.core.fleet import FleetSettings, HostRole, LaneRow, asked_of_host
from lockgate.core.hosts import Host, agents_in
from lockgate.core.jobs import Job, TestTree, project_of, task_of
from lockgate.errors import LockgateError

NONE = Settings(formula="none", gates=())


def host_of(it: App, settings: FleetSettings) -> Host:
    own, served = settings.host, serving_of(it.home)
    serves = own.listen and HostRole.API in own.roles
    return Host(
        name=own.name or platform.node(),
        labels=own.labels,
        agents=agents_of(it),
        roles=tuple(own.roles),
        slots=own.slots,
        judges=own.judges,
        boot=start_of(it.home),
        version=__version__,
        ssh=own.ssh or served.ssh,
        api=own.api or (served.url if serves else ""),
    )


def agents_of(it: App) -> tuple[str, ...]:
    """Those whose programs and logins are here; agents of the projects' own too."""
    rules = [load_config(None, origin="this host")]
    for project in it.store.projects():
        with suppress(LockgateError):  # who starts its tasks says why
            rules.append(it.configuration.settings_of(project))
    found = {one for known in rules for one in known_agents(known) if _has(it, one, known)}
    return tuple(sorted(found))


def lacking_for(it: App, row: LaneRow) -> tuple[str, ...]:
    """The agents that a job needs and that are not here; none where its rules cannot be read."""
    wanted = agents_in(row.needs)
    if not wanted:
        return ()
    with suppress(LockgateError):
        rules = rules_for(it, row.job)
        return tuple(one for one in wanted if not _has(it, one, rules))
    return ()


def _has(it: App, agent: str, rules: Settings) -> bool:
    with suppress(LockgateError):
        return it.logins.is_ready(agent, rules)
    return False


def labels_of(it: App, job: Job) -> tuple[str, ...] | None:
    """What a host must have for a job; None where its rules cannot be read, as its doer says."""
    with suppress(LockgateError):
        return asked_of_host(job, rules_for(it, job))
    return None


def rules_for(it: App, job: Job) -> Settings:
    """By which a job is done; none where it belongs to no project."""
    if not project_of(job):
        return NONE
    project, id = it.store.project(project_of(job)), task_of(job)
    if isinstance(job, TestTree):
        return it.configuration.settings_at(project, job.tip)
    task = it.store.find(id) if id else None
    return it.configuration.settings_for(task, project) if task else NONE
