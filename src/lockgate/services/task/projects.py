"""Which project a directory belongs to, which task is meant, its base's configuration.

A configuration counts on trust: what a repository asks for, a human has agreed to at first use.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from posixpath import normpath
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.config.settings import Branch, ProjectSettings, Settings, pin
from lockgate.core.config.trust import (
    CONFIG,
    Question,
    Request,
    Surroundings,
    agreed,
    from_origin,
    grown,
    origin_of,
    outside_words,
    requests,
)
from lockgate.core.lifecycle.records import Unacceptable, check_branch
from lockgate.core.model.task import Pinned, ProjectId, Task, TaskId
from lockgate.core.text.task_file import Readable
from lockgate.errors import BadConfig, LockgateError, NoSuchTask, Refused, Untrusted
from lockgate.ports import (
    Configuration,
    Granted,
    Grants,
    Project,
    Repository,
    Store,
    TaskFiles,
    TaskFilter,
)
from lockgate.services.task.callers import HUMAN, Caller, not_its_own

if TYPE_CHECKING:
    from lockgate.core.config.clones import Clone

SHOWN = 10  # requests that a refusal names
NEWEST = 1000  # tasks among which a mistyped id is looked for


# Trust on first use: what a repository asks for, and what a human has agreed to.


class Trust(Struct, frozen=True):
    """`said` are the digests that the environment brings: LOCKGATE_TRUST."""

    repository: Repository
    grants: Grants
    said: frozenset[str] = frozenset()

    def check(self, project: Project, commit: str, settings: Settings) -> None:
        """Untrusted where the settings of this commit ask for what nobody has agreed to."""
        question = self.question(project, commit, settings)
        refused = question.asked if question.new else ()
        if self.grants.of(project).refused != refused:
            self.grants.note(project, refused)
        if question.new:
            raise Untrusted(project.name, wanted(question.new), question.digest)

    def question(self, project: Project, commit: str, settings: Settings) -> Question:
        return self._question(project, self._requests(project, commit, settings))

    def refused(self, project: Project) -> Question:
        """What something was refused for and still would be, whichever commit it was of."""
        known = self.grants.of(project).refused
        return self._question(project, known) if known else Question()

    def grant(self, project: Project, question: Question) -> None:
        if not question.asked:
            return
        known = self.grants.of(project)
        keys = _kept(known, question.origin) | {it.key for it in question.asked}
        self.grants.put(project, Granted(origin=question.origin, keys=keys))
        self.grants.note(project, ())

    def landed(
        self, project: Project, one: tuple[str, Settings], two: tuple[str, Settings]
    ) -> None:
        """From one commit to the other: a human agreed to what the second asks for in addition."""
        before = {it.key for it in self._requests(project, *one)}
        more = grown(self._requests(project, *two), before)
        if more:
            self.grant(project, self._question(project, more))

    def forget(self, project: Project) -> None:
        self.grants.forget(project)

    def _question(self, project: Project, asked: tuple[Request, ...]) -> Question:
        if not asked:
            return Question()
        url = self.repository.origin(project)
        question = Question(asked=asked, origin=origin_of(url) or url)
        if question.digest in self.said or from_origin(origin_of(url), self.grants.origins()):
            return question
        granted = _kept(self.grants.of(project), question.origin)
        return replace(question, new=grown(asked, granted))

    def _requests(self, project: Project, commit: str, settings: Settings) -> tuple[Request, ...]:
        around = Surroundings(
            home=self.grants.home(),
            read={it: self.grants.leads(it) for it in settings.sandbox.read},
            copy=self._copies(project, settings),
            programs=self._programs(project, commit, settings),
        )
        return requests(settings, around)

    def _copies(self, project: Project, settings: Settings) -> dict[str, str]:
        """Those that lead out of the work tree, by links."""
        root = self.grants.leads(project.root)
        found = {it: self.grants.leads(it, root) for it in settings.env.copy}
        return {name: real for name, real in found.items() if not real.startswith(f"{root}/")}

    def _programs(self, project: Project, commit: str, settings: Settings) -> dict[str, str]:
        found: dict[str, str] = {}
        for word in outside_words(settings):
            path = normpath(word.removeprefix(f"{project.root}/"))
            text = self.repository.file_at(project, commit, path)
            if text is not None:
                content = text.encode(errors="surrogateescape")
                found[word] = hashlib.sha256(content).hexdigest()
        return found


def _kept(granted: Granted, origin: str) -> frozenset[str]:
    """What still holds: another origin is another repository, in a place that was used before."""
    return granted.keys if granted.origin in {"", origin} else frozenset()


def wanted(new: Sequence[Request]) -> str:
    told = "; ".join(f"to {it.says}" for it in new[:SHOWN])
    more = len(new) - SHOWN
    return f"{told}; and {more} more (lockgate trust --show)" if more > 0 else told


def unagreed(configuration: Configuration, project: Project) -> tuple[str, str]:
    """Why nothing of it runs, and the command; also where that cannot be read."""
    try:
        new = configuration.refused(project)
    except LockgateError as error:
        return str(error), error.fix
    return (f"it wants {wanted(new)}" if new else "", "lockgate trust")


# Projects and their configuration.


class Projects(Struct, frozen=True):
    store: Store
    repository: Repository
    files: TaskFiles

    def here(self, directory: Path) -> Project:
        """The one that hosts share, where this is a clone of it, or this host's mirror."""
        project = self.clone_at(directory)
        shared = [it for it in self.store.projects() if it.url]
        return self._shared(project, shared) if shared else project

    def _shared(self, project: Project, shared: Sequence[Project]) -> Project:
        from lockgate.core.hub import is_of  # noqa: PLC0415 - only where hosts share a project

        same = [it for it in shared if it.id == project.id or it.common_dir == project.common_dir]
        origin = "" if same else self.repository.origin(project)
        return next(iter(same or [it for it in shared if is_of(origin, it.url)]), project)

    def clone_at(self, directory: Path) -> Project:
        """As it lies there."""
        project = self.repository.project_at(directory)
        if project is None:
            raise Refused(
                "no project was found",
                why=f"{directory} is not inside a git repository",
                fix="change into the repository, or make one: git init",
            )
        return project

    def with_id(self, id: ProjectId) -> Project:
        return self.store.project(id)

    def known(self) -> tuple[Project, ...]:
        """Those that have, or had, tasks."""
        return self.store.projects()

    def named(self, name: str, directory: Path) -> Project:
        """By the name or id of a project that is known, or by a path, also from this directory."""
        known = [it for it in self.known() if name in {it.name, it.id}]
        if len(known) == 1:
            return known[0]
        with suppress(LockgateError):  # there is no such directory
            found = self.repository.project_at(directory / name)
            if found is not None:
                return found
        why = f"several are called {name!r}" if known else f"none is called {name!r}, or lies there"
        names = ", ".join(it.root for it in self.store.projects()[:SHOWN])
        fix = f"name one by its path: {names}" if names else "name one by its path"
        raise Refused("no project was found", why=why, fix=fix)

    def of_clone(self, clone: "Clone", listed: Sequence[str]) -> Project:
        """The one that a clone on another machine is of: a known one, or one of these paths."""
        from lockgate.core.config.clones import Held, Unclear, meant  # noqa: PLC0415 - only here

        found = {it.id: it for it in self.known()}
        for path in listed:
            project = self.repository.project_at(Path(path))
            if project is not None:
                found[project.id] = project
        held = [
            Held(root=it.root, name=it.name, id=it.id, origin=self.repository.origin(it))
            for it in found.values()
            if Path(it.root).is_dir()
        ]
        match meant(clone, held):
            case Held(id=id):
                return found[ProjectId(id)]
            case Unclear(why=why, fix=fix):
                raise Refused("no project was found", why=why, fix=fix)

    def tip_of(self, task: Task) -> str | None:
        """The commit that the task's branch is at in the user's repository, if it is there."""
        return self.repository.commit_of(self.store.project(task.project), task.branch)

    def task_here(self, directory: Path, caller: Caller) -> TaskId:
        """The session's own task; without a session, that of the TASK.md that lies here."""
        if caller.session:
            return caller.session.task
        text = self.files.read_at(directory)
        fields = self.files.fields(text) if isinstance(text, Readable) else None
        id = fields.get("id") if isinstance(fields, dict) else None
        if not isinstance(id, str):
            raise Refused(
                "no task was found",
                why="no task is named, and there is no TASK.md in this directory",
                fix="name one: lockgate task list",
            )
        return TaskId(id)

    def task_named(self, name: str, caller: Caller) -> TaskId:
        return task_named(self.store, name, caller)


def task_named(store: Store, name: str, caller: Caller = HUMAN) -> TaskId:
    """The one task whose id begins so; for a session no other task than its own has a name."""
    if caller.session:
        if not name or not caller.session.task.startswith(name):
            raise not_its_own(caller.session)
        return store.load(caller.session.task).id
    match store.named(name) if name else ():
        case (id,):
            return id
        case ():
            newest = store.page(TaskFilter(), None, NEWEST).tasks
            raise NoSuchTask(name, known=[it.id for it in newest])
        case several:
            ids = ", ".join(several)
            raise NoSuchTask(name, why=f"several ids begin so: {ids}, ...")


class Branches(Struct, frozen=True):
    """Asked when a task is made, and again when its branch is about to be set."""

    store: Store
    repository: Repository
    configuration: Configuration

    def problem(
        self, project: Project, branch: str, task: TaskId | None = None
    ) -> Unacceptable | None:
        """Why a task cannot have this branch; `task` is the one that has it already."""
        others = (it for it in self.store.on_branch(project.id, branch) if it.id != task)
        return check_branch(branch, frozenset(self._landing(project)), others)

    def _landing(self, project: Project) -> Iterator[str]:
        """The base, the branch whose configuration names the base, and the remotes' defaults."""
        yield self.configuration.rules_of(project).base
        usual = self.repository.base_branch(project)
        if usual:
            yield usual.name
        yield from self.repository.default_branches(project)


# The project's configuration, read from its trusted base commit and never from a workspace.


__all__ = ["CONFIG", "BaseConfiguration", "Written"]
DEFAULT = ProjectSettings().base  # what a file that names no base says


class Written(Struct, frozen=True):
    """What a commit says; the defaults where it has no such file."""

    settings: Settings
    digest: str
    there: bool


class BaseConfiguration(Struct, frozen=True):
    """`load` reads a text (None where base has no such file) or raises BadConfig.

    Commands that only look ask for `settings`; what acts on the settings asks for `allowed`.
    """

    repository: Repository
    load: Callable[[str | None, str], Settings]
    digest: Callable[[Settings], str]
    trust: Trust
    _known: dict[str, Written] = field(default_factory=dict[str, Written])  # by project and commit
    _read: dict[str, Written] = field(default_factory=dict[str, Written])  # by text

    def settings_at(self, project: Project, commit: str) -> Settings:
        return self.written_at(project, commit).settings

    def settings_of(self, project: Project) -> Settings:
        return self.settings_at(project, self.base_of(project).commit)

    def allowed_at(self, project: Project, commit: str) -> Settings:
        settings = self.settings_at(project, commit)
        self.trust.check(project, commit, settings)
        return settings

    def allowed_of(self, project: Project) -> Settings:
        return self.allowed_at(project, self.base_of(project).commit)

    def settings_for(self, task: Task, project: Project) -> Settings:
        if task.pinned is None:
            return self.settings_of(project)
        return self.settings_at(project, task.pinned.base_commit)

    def allowed_for(self, task: Task, project: Project) -> Settings:
        if task.pinned is None:
            return self.allowed_of(project)
        return self.allowed_at(project, task.pinned.base_commit)

    def refused(self, project: Project) -> tuple[Request, ...]:
        return self.trust.refused(project).new

    def noted(self) -> tuple[ProjectId, ...]:
        return self.trust.grants.noted()

    def agree(self, project: Project) -> None:
        """To all that its base asks for now, for a user whose own repository it is."""
        commit = self.base_of(project).commit
        settings = self.settings_at(project, commit)
        self.trust.grant(project, self.trust.question(project, commit, settings))

    def landed(self, project: Project, before: str, after: str, by: Sequence[Task]) -> None:
        if agreed(by):
            one, two = ((it, self.settings_at(project, it)) for it in (before, after))
            self.trust.landed(project, one, two)

    def base_of(self, project: Project) -> Branch:
        return self.trusted(project, self._usual(project))

    def rules_of(self, project: Project) -> Pinned:
        base = self.base_of(project)
        return self.rules_at(project, base.commit, base.name)

    def rules_at(self, project: Project, commit: str, base: str) -> Pinned:
        written = self.written_at(project, commit)
        return replace(pin(written.settings, commit, written.digest), base=base)

    def trusted(
        self,
        project: Project,
        usual: Branch,
        tip: Callable[[Project, str], Branch | None] | None = None,
    ) -> Branch:
        """The base branch, which has rules that can be read: the usual one may name another.

        `tip` finds that one; without it only a local branch counts.
        """
        written = self.written_at(project, usual.commit, f"on {usual.name}")
        named = written.settings.project.base if written.there else usual.name
        if named == usual.name:
            return usual
        other = (tip or self._local)(project, named)
        if other is None and named == DEFAULT:
            return usual
        if other is None:
            raise _unread(project, f"branch {named} has no commit")
        self.written_at(project, other.commit, f"on {named}")
        return other

    def _local(self, project: Project, name: str) -> Branch | None:
        commit = self.repository.commit_of(project, name)
        return Branch(name, commit) if commit else None

    def _usual(self, project: Project) -> Branch:
        usual = self.repository.base_branch(project)
        if usual is None:
            raise _unread(project, "no branch has a commit yet")
        return usual

    def written_at(self, project: Project, commit: str, where: str = "") -> Written:
        """A commit does not change, so it is asked once; most say the same as the one before."""
        key = f"{project.id} {commit}"
        if key in self._known:
            return self._known[key]
        text = self.repository.file_at(project, commit, CONFIG)
        if text is None or text not in self._read:
            settings = self.load(text, f"{CONFIG} {where or f'at {commit[:12]}'}")
            written = Written(settings, self.digest(settings), there=text is not None)
        else:
            written = self._read[text]
        if text is not None:  # it may only not have been found
            self._known[key] = self._read[text] = written
        return written


def _unread(project: Project, why: str) -> BadConfig:
    what = f"the configuration of {project.name} was not read"
    return BadConfig(what, why=why, fix="commit something on the base branch, then: lockgate init")
