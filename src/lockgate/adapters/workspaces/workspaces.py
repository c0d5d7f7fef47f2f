"""The port's methods, each one a few words over the modules beside this one."""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec.structs import replace

from lockgate.adapters.sandbox.layered import place_of
from lockgate.adapters.workspaces import changes, layers
from lockgate.adapters.workspaces.clones import (
    Order,
    clone_for_review,
    clone_for_work,
    clone_of_commit,
)
from lockgate.adapters.workspaces.files import (
    discard,
    made_mark,
    owner_at,
    ready_mark,
    remove,
    size_of,
    write_files,
)
from lockgate.adapters.workspaces.git import user_of
from lockgate.adapters.workspaces.layers import Own, own_layer
from lockgate.adapters.workspaces.reading import opened
from lockgate.adapters.workspaces.repositories import (
    CHANGES,
    PUBLISHED,
    Repositories,
    keep,
    repositories_of,
    rules_of,
    show_base,
    task_lock,
    up_to_date,
    writing,
)
from lockgate.adapters.workspaces.service_data import Wanted, data_of
from lockgate.adapters.workspaces.setup import furnish
from lockgate.adapters.workspaces.snapshot import take_work
from lockgate.core.config.settings import Settings
from lockgate.core.hub import handed_over, newest_change, published_ref
from lockgate.core.model.brought import Brought, SetUpFailed
from lockgate.core.model.commits import byline
from lockgate.core.model.secrets import Secret
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import Unavailable
from lockgate.ports import Candidate, Change, FileSize, Project, Unfit, candidate_of
from lockgate.ports.hub import NO_HUB, Exchange

TAKE_SECONDS = 600.0
MOST_READ = 100_000  # bytes of a file that an agent wrote for us
_ID = re.compile(r"[a-z0-9-]{1,40}")
_PLACES = {
    "workspaces": "workspaces",
    "repositories": "repos",
    "homes": "homes",
    "sessions": "sessions",
    "layers": "layers",
    "services": "services",
    "caches": "caches",
}


class GitWorkspaces:
    """All clones under one state directory.

    Without a sandbox the work is read by a plain process: hardened in the same way, and never by a
    git that is told what to do by the clone, but as the user who also runs the agent. That level
    keeps honest agents apart; it does not hold one that wants out.
    """

    def __init__(
        self,
        home: Path,
        *,
        sandboxed: bool = True,
        take_seconds: float = TAKE_SECONDS,
        check_out: Callable[[Order, Path, str], None] = clone_of_commit,
        secrets: Callable[[Candidate, str], Sequence[Secret]] = lambda _candidate, _agent: (),
        signoff: Callable[[], bool] = lambda: False,
    ) -> None:
        self.home = home
        self.sandboxed = sandboxed
        self.take_seconds = take_seconds
        self.check_out = check_out
        self.secrets = secrets
        self.signoff = signoff
        self.hub: Exchange = NO_HUB  # set where hosts share the projects

    def prepare(self, project: Project, task: Task) -> Path:
        place = self.place(task.id)
        with task_lock(self.home, _checked(task.id)):
            if project.url:
                self._go_on(project, task)
            if not place.is_dir():
                clone_for_work(self._order_of(candidate_of(project, task), task), task, place)
        return place

    def place(self, id: TaskId) -> Path:
        return self.home / "workspaces" / _checked(id)

    def base(self, project: Project) -> Path:
        return repositories_of(self.home, project).base

    def write(self, directory: Path, files: Mapping[str, str], *, sandboxed: bool = True) -> None:
        """A directory that is missing is made; all of it belongs to the agent."""
        write_files(directory, files, *owner_at(sandboxed=self.sandboxed and sandboxed))

    def read(self, directory: Path, name: str) -> str | None:
        try:
            with opened(directory / name) as file:
                return file.read(MOST_READ).decode(errors="replace")
        except OSError:
            return None

    def take(self, project: Project, task: Task) -> Change | Unfit:
        with task_lock(self.home, _checked(task.id)):
            return self._take(project, task)

    def adopt(self, project: Project, task: Task) -> Change | None:
        self.hub.follow(project)
        repos = self._repos(candidate_of(project, task))
        commit = changes.adopted(repos, project, task)
        if commit is None:
            return None
        self.hub.send(project, handed_over(task.id, task.generation, commit))
        return changes.change_of(repos, candidate_of(project, task, commit))

    def change(self, it: Candidate) -> Change:
        return changes.change_of(self._repos(it), it)

    def changed_files(self, it: Candidate) -> tuple[str, ...]:
        return changes.files_of(self._repos(it), it)

    def file_sizes(self, it: Candidate) -> tuple[FileSize, ...]:
        return changes.sizes_of(self._repos(it), it)

    def diff(self, project: Project, task: Task, commit: str) -> str:
        it = candidate_of(project, task, commit)
        return changes.diff_of(self._repos(it), it)

    def checkout(self, it: Candidate, directory: Path) -> str:
        """What is there already and is no clone of this commit is replaced."""
        order = self._order(it)
        with task_lock(self.home, _checked(it.name)), ThreadPoolExecutor(1) as pool:
            tree = pool.submit(self.tree, it.project, it.commit)  # while its files are written
            self.check_out(order, directory, it.commit)
        return tree.result()

    def checkout_for_review(
        self, project: Project, task: Task, commit: str, directory: Path, named: Sequence[str]
    ) -> None:
        order = self._order(candidate_of(project, task))
        with task_lock(self.home, _checked(task.id)):
            clone_for_review(order, directory, commit, named)

    def squashed(self, project: Project, task: Task, commit: str) -> str:
        it = candidate_of(project, task, commit)
        return changes.squashed(self._repos(it), it, task.goal)

    def tree(self, project: Project, commit: str) -> str:
        self.hub.bring(project, (commit,))
        return changes.tree_of(repositories_of(self.home, project), commit)

    def discard(self, directory: Path) -> None:
        discard(directory)

    def publish(self, project: Project, task: Task, commit: str) -> str | None:
        repos = self._repos(candidate_of(project, task, commit))
        if not project.url:
            return changes.published(repos, project, task, commit)
        self.hub.follow(project)
        self.hub.bring_refs(project, f"{PUBLISHED}/{task.id}")
        was = self.hub.refs(project, f"refs/heads/{task.branch}").get(f"refs/heads/{task.branch}")
        why = changes.published(repos, project, task, commit)
        mark = published_ref(task.id, commit)
        return why or self.hub.publish(project, task.branch, commit, was, mark)

    def release(self, project: Project, task: Task, *, counts: bool = True) -> None:
        """Its HOME goes with it, and what its reviewers and gates had."""
        place = self.place(task.id)
        with task_lock(self.home, _checked(task.id)):
            has_work = counts and place.is_dir() and not self._is_left_behind(project, task)
            if has_work and isinstance(self._take(project, task), Unfit):
                return
            if place.is_dir():
                place.rename(place.with_name(f".old-{task.id}-{secrets.token_hex(4)}"))
            for rest in self._rests(task.id):
                remove(rest)

    def set_up(
        self, it: Candidate, settings: Settings, directory: Path, *, own: bool = False
    ) -> None:
        """Give a clone, or a checkout of ours, what `[env]` says; once for the same of it."""
        if not (settings.env.setup or settings.env.copy):
            return
        furnish(self._order(it), directory, settings, own=own)

    def brought(self, it: Candidate, settings: Settings) -> Brought | SetUpFailed | None:
        found = own_layer(self._order(it), settings) if settings.env.setup else None
        return found.brought if isinstance(found, Own) else found

    def service_data(self, it: Candidate, settings: Settings, commit: str) -> Path | None:
        if not settings.services:
            return None

        def lay_out(wanted: str, directory: Path) -> None:
            of_commit = replace(it, commit=wanted)
            clone_of_commit(self._order(of_commit), directory, wanted)
            self.set_up(of_commit, settings, directory, own=True)

        order = self._order(it)
        wanted = commit or order.base_commit
        return data_of(
            Wanted(order=order, services=settings.services, commit=wanted, lay_out=lay_out)
        )

    def sizes(self) -> Mapping[str, int]:
        return {name: size_of(self.home / place) for name, place in _PLACES.items()}

    def keep_within(
        self, limit_bytes: int, idle: Sequence[tuple[Project, Task]]
    ) -> tuple[TaskId, ...]:
        """Release idle clones, the longest untouched first, until all together are below it."""
        left, released = size_of(self.home / "workspaces"), list[TaskId]()
        for project, task in sorted(idle, key=lambda it: it[1].updated):
            size = size_of(self.place(task.id))
            if left <= limit_bytes:
                break
            if size and self._could_release(project, task):
                left -= size
                released.append(task.id)
        return tuple(released)

    def keep_set_ups_within(self, limit_bytes: int) -> None:
        layers.keep_within(self.home, limit_bytes)

    def _could_release(self, project: Project, task: Task) -> bool:
        try:
            self.release(project, task)
        except Unavailable:
            return False
        return not self.place(task.id).exists()

    def _take(self, project: Project, task: Task) -> Change | Unfit:
        order = self._order_of(candidate_of(project, task), task)
        known = self.secrets(order.candidate, task.agent)
        taken = take_work(order, self.place(task.id), self.take_seconds, known)
        if isinstance(taken, Unfit):
            return taken
        if project.url and self.place(task.id).is_dir() and taken.commit != order.base_commit:
            self._hand_over(project, task, order.repos, taken.commit)
        it = candidate_of(project, task, taken.commit)
        change, count = changes.change_of(order.repos, it), changes.commits_of(order.repos, it)
        return replace(change, mended=taken.mended, commits=count)

    def _repos(self, it: Candidate) -> Repositories:
        """With the candidate's base commit, and the candidate where another host has made it."""
        self.hub.follow(it.project, rules_of(it).base_commit)
        repos = up_to_date(self.home, it)
        self.hub.bring(it.project, filter(None, (it.commit,)), it.name)
        return repos

    def _hand_over(self, project: Project, task: Task, repos: Repositories, commit: str) -> None:
        """Before any turn names the commit; not from a clone that another host has left behind."""
        if self._gone_on(project, task, repos):
            raise Unavailable(
                f"the work of task {task.id} was not taken from this host",
                why="another host has gone on with the task since",
                fix=f"look at it there: lockgate task show {task.id}",
            )
        self.hub.send(project, handed_over(task.id, task.generation, commit))

    def _gone_on(self, project: Project, task: Task, repos: Repositories) -> str | None:
        """The task's newest change, where it was not made here."""
        there = self.hub.refs(project, f"{CHANGES}/{task.id}/*")
        commit = newest_change(there, task.id, task.generation)
        return None if commit is None or repos.kept(task.id, commit) else commit

    def _is_left_behind(self, project: Project, task: Task) -> bool:
        """Nothing of it counts: its task's work goes on at another host."""
        if not project.url:
            return False
        repos = self._repos(candidate_of(project, task))
        return self._gone_on(project, task, repos) is not None

    def _go_on(self, project: Project, task: Task) -> None:
        """Where another host went on with the task since, its clone here is put away.

        Agents see the base as the hub has it.
        """
        self.hub.follow(project)
        repos = self._repos(candidate_of(project, task))
        show_base(repos, project, candidate_of(project, task))
        commit = self._gone_on(project, task, repos)
        if commit is None:
            return
        self.hub.bring(project, (commit,), task.id)
        with writing(repos):
            keep(repos, task.id, commit)
        place = self.place(task.id)
        if place.is_dir():
            place.rename(place.with_name(f".old-{task.id}-{secrets.token_hex(4)}"))

    def _order(self, it: Candidate) -> Order:
        enclosed = self.sandboxed and rules_of(it).sandboxed
        return Order(candidate=it, repos=self._repos(it), sandboxed=enclosed)

    def _order_of(self, it: Candidate, task: Task) -> Order:
        """Whose commits carry the user's name."""
        user, author = user_of(it.project).person, rules_of(it).author
        by = byline(user, task.agent, author, signoff=self.signoff())
        return replace(self._order(it), by=by, goal=task.goal)

    def _rests(self, id: TaskId) -> Iterator[Path]:
        """Beside the rooms, our marks and what a killed one has left."""
        place = self.place(id)
        yield from (self.home / room / id for room in ("homes", "reviews", "runs"))
        yield from (ready_mark(place), made_mark(place), place_of(place))
        for part in ("new", "old", "take", "copy"):
            yield from place.parent.glob(f".{part}-{id}-????????")


def _checked(name: str) -> str:
    if not _ID.fullmatch(name):
        raise ValueError(f"not a task id: {name!r}")
    return name
