"""What keeps a home in order: a check-up, cleaning, a deep look, versions that are compared."""

from functools import partial

from lockgate import __version__
from lockgate.adapters.hub import GitExchange
from lockgate.adapters.sandbox import sockets_closed_by, trouble
from lockgate.adapters.sandbox.services.serving import missing
from lockgate.adapters.system import holder, version_at, version_of
from lockgate.adapters.upkeep import DiskFolders, GitTaskRefs, HomeInspector
from lockgate.adapters.user_files import kept_for
from lockgate.bootstrap.app import App
from lockgate.core.model.versions import Versions
from lockgate.services.setup.cleaning import Cleaner
from lockgate.services.setup.doctor import Checkup
from lockgate.services.setup.inspection import Inspection


def checkup() -> Checkup:
    """What `doctor` looks at, also where no database can be opened."""
    return Checkup(version_of, trouble, sockets_closed_by, missing)


def cleaner_of(it: App, *, leads: bool = True) -> Cleaner:
    """Frees disk space that nothing needs; at hubs, and of rows, only where this host leads."""
    clock = it.witness.clock
    return Cleaner(
        store=it.store,
        folders=DiskFolders(it.home, clock.now),
        refs=GitTaskRefs(it.home, GitExchange(it.home)) if leads else GitTaskRefs(it.home),
        workspaces=it.workspaces,
        keep=partial(kept_for, it.home),
        clock=clock,
        host=it.witness.host,
        leads=leads,
    )


def inspection_of(it: App, *, repair: bool) -> Inspection:
    """The database against the files and refs of the home."""
    inspector = HomeInspector(it.home, it.store.database)
    return Inspection(store=it.store, files=it.witness.files, inspector=inspector, repair=repair)


def versions_of(it: App) -> Versions:
    """What is at work in the home, to be compared."""
    inspector = HomeInspector(it.home, it.store.database)
    return Versions(
        program=__version__,
        orchestrator=version_at(it.home) if holder(it.home) else None,
        runners=inspector.runners(session.id for session in it.store.sessions_alive()),
        schema=inspector.schema(),
        known=it.store.database.known,
    )
