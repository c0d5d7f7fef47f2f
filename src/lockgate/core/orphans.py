"""Directories of a home that belong to nothing which the database knows."""

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

# Which rows the names in a folder stand for.
OF_TASKS = ("tasks", "workspaces", "homes", "reviews")
OF_SESSIONS = ("sessions",)
OF_PROJECTS = ("repos", "layers", "caches", "services")
WORK = frozenset({"tasks", "workspaces", "repos"})  # what somebody wrote: it is never removed
TRIAL = "trial-"  # what is tried without a task


class Orphan(Struct, frozen=True):
    folder: str
    name: str

    @property
    def is_work(self) -> bool:
        return self.folder in WORK


class Known(Struct, frozen=True):
    """The rows of the database, by their ids."""

    tasks: Collection[str]
    sessions: Collection[str]
    projects: Collection[str]


def orphans(folders: Mapping[str, Collection[str]], known: Known) -> Iterator[Orphan]:
    """Hidden names are marks of what lies beside them, and go with that."""
    rows = {
        **dict.fromkeys(OF_TASKS, known.tasks),
        **dict.fromkeys(OF_SESSIONS, known.sessions),
        **dict.fromkeys(OF_PROJECTS, known.projects),
    }
    for folder, names in folders.items():
        for name in sorted(names):
            if not name.startswith((".", TRIAL)) and name not in rows[folder]:
                yield Orphan(folder, name)
