"""Directories of a home and branches of Lockgate that belong to nothing in the database."""

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


class OwnBranch(Struct, frozen=True, kw_only=True):
    """A branch in the user's repository that Lockgate has set for a task.

    `kept`: its commit is also named by a ref of Lockgate's own, so that nothing is lost with it.
    `used`: where somebody works on it, empty where nobody does.
    """

    task: str
    name: str
    commit: str
    kept: bool
    used: str = ""

    @property
    def why_it_stays(self) -> str:
        """Empty where it is safe to remove."""
        return self.used or ("" if self.kept else "its commit is named by nothing else")


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
