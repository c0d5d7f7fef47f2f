"""A home as it lies on disk, looked at for what does not fit together."""

import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from lockgate.adapters.sessions.sessions import ProcessSessions
from lockgate.adapters.store.database import Database
from lockgate.adapters.upkeep.task_refs import own_branches, remove_own_branch
from lockgate.adapters.workspaces.files import discard, made_mark
from lockgate.adapters.workspaces.git import git, words_of
from lockgate.adapters.workspaces.repositories import repositories_of
from lockgate.core.model.task import SessionId
from lockgate.core.orphans import OF_PROJECTS, OF_SESSIONS, OF_TASKS, OwnBranch
from lockgate.errors import Unavailable
from lockgate.ports import Project

_COUNTED = """
SELECT project, status, sum(n) AS n FROM (
    SELECT project, status, n FROM task_counts
    UNION ALL SELECT project, status, -count(*) AS n FROM tasks GROUP BY project, status
) AS both_counts GROUP BY project, status HAVING sum(n) <> 0
"""
MOUNT_POINT = 4  # which field of /proc/self/mountinfo
JUST_NOW = 3600.0  # seconds


class HomeInspector:
    """The Inspector port."""

    def __init__(self, home: Path, database: Database) -> None:
        self._home, self._database, self._sessions = home, database, ProcessSessions(home)

    def damage(self) -> Sequence[str]:
        said = [f"counts of tasks: {dict(row)}" for row in self._database.read(_COUNTED, {})]
        if self._database.shown.startswith("/"):  # a file, which SQLite can check by itself
            for pragma in ("integrity_check", "foreign_key_check"):
                found = self._database.read(f"PRAGMA {pragma}", {})
                said += [str(dict(it)) for it in found if "ok" not in it.values()]
        return said

    def folders(self) -> Mapping[str, Sequence[str]]:
        named = (*OF_TASKS, *OF_SESSIONS, *OF_PROJECTS)
        return {it: _names(self._home / it) for it in named}

    def is_running(self, session: str) -> bool:
        id = SessionId(session)
        return self._sessions.started(id) and self._sessions.exit_of(id) is None

    def schema(self) -> int:
        """The version of the database's own schema."""
        asked = "SELECT max(version) AS version FROM schema_version"
        if self._database.shown.startswith("/"):
            asked = "SELECT user_version AS version FROM pragma_user_version"
        [row] = self._database.read(asked, {})
        return int(str(row["version"]))

    def runners(self, sessions: Iterable[str]) -> Mapping[str, str]:
        running = [SessionId(it) for it in sessions if self.is_running(it)]
        return {it: self._sessions.version(it) for it in running}

    def half_made(self) -> Sequence[str]:
        """One that was made just now may be about to get its mark."""
        places = (self._home / "layers").glob("*/[!.]*")
        half = (it for it in places if not made_mark(it).exists())
        return [str(it.relative_to(self._home)) for it in half if _age(it) > JUST_NOW]

    def mounts(self) -> Sequence[str]:
        try:
            text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        points = [line.split(" ")[MOUNT_POINT] for line in text.splitlines()]
        return [it for it in points if it.startswith(f"{self._home}/")]

    def unsound(self, project: Project) -> Sequence[str]:
        repos = repositories_of(self._home, project)
        found = list[str]()
        for place in (repos.base, repos.judge):
            if place.is_dir():
                done = git(place, "fsck", "--connectivity-only", "--no-dangling", "--no-progress")
                if done.code != 0:
                    found.append(f"{place.name}: {words_of(done)}")
        return found

    def lacking(self, project: Project, commits: Sequence[str], *, theirs: bool) -> Sequence[str]:
        repos = repositories_of(self._home, project)
        place = Path(project.common_dir) if theirs else repos.judge
        if not commits:
            return []
        if not place.is_dir():
            return list(commits)
        asked = repos.directory / f".asked-{secrets.token_hex(4)}"
        asked.parent.mkdir(parents=True, exist_ok=True)
        try:
            asked.write_text("".join(f"{it}\n" for it in commits), encoding="ascii")
            done = git(place, "cat-file", "--batch-check=%(objecttype)", given=asked)
        finally:
            asked.unlink(missing_ok=True)
        kinds = done.out.splitlines()
        return [it for it, kind in zip(commits, kinds, strict=False) if kind != "commit"]

    def branches(self, project: Project, tasks: Collection[str]) -> Iterable[OwnBranch]:
        return own_branches(repositories_of(self._home, project), project, tasks)

    def remove_branch(self, project: Project, it: OwnBranch) -> bool:
        return remove_own_branch(repositories_of(self._home, project), project, it)

    def put_aside(self, name: str) -> str:
        place = self._home / name
        new = self._home / "deleted" / f"{place.parent.name}-{place.name}-{secrets.token_hex(2)}"
        try:
            new.parent.mkdir(parents=True, exist_ok=True)
            place.rename(new)
        except OSError as error:
            what, fix = f"{place} was not moved", "see that the home can be written, try again"
            raise Unavailable(what, why=str(error), fix=fix) from error
        return str(new.relative_to(self._home))

    def remove(self, name: str) -> None:
        discard(self._home / name)


def _age(place: Path) -> float:
    try:
        return time.time() - place.lstat().st_mtime
    except OSError:
        return 0.0


def _names(place: Path) -> Sequence[str]:
    try:
        return [it.name for it in place.iterdir()]
    except OSError:
        return []
