"""What is there of what Lockgate uses, and what each missing part costs.

Also whether a task could be worked on here, asked before anything is made; and a branch for it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import chain, count
from pathlib import Path

from msgspec import Struct

from lockgate.core.config.settings import (
    INSTALLED_BY,
    SandboxLevel,
    ServiceKind,
    Settings,
    known_agents,
    labels_in,
)
from lockgate.core.model import commits
from lockgate.core.model.agents import Ending, Exit, Job, names_a_file
from lockgate.core.model.task import Role, SessionId
from lockgate.errors import Refused
from lockgate.ports import (
    Candidate,
    Chance,
    Configuration,
    Credentials,
    Desk,
    Harnesses,
    Project,
    Repository,
    Sessions,
    Start,
    Store,
    Workspaces,
    of_project,
)
from lockgate.services.task.logins import Logins
from lockgate.services.task.projects import CONFIG, BaseConfiguration

OLDEST_GIT = (2, 38)
BUILT_IN = "scripted"
PLAIN = Settings(formula="none", gates=())  # where no project says otherwise
WHAT = "the task was not created"
LONGEST = 40  # characters of a branch that is made of a summary
BATCH = 1000
_OTHER = re.compile(r"[^a-z0-9]+")


class Part(Struct, frozen=True, kw_only=True):
    """Nothing is wrong with it where it costs nothing; without a `needed` one no task is done."""

    name: str
    found: str
    costs: str = ""
    fix: str = ""
    needed: bool = False


def settings_here(rules: BaseConfiguration, directory: Path) -> Settings:
    """Those of the project that a directory belongs to; plain ones outside of all projects."""
    project = rules.repository.project_at(directory)
    return rules.settings_of(project) if project else PLAIN


def must_be_trusted(rules: BaseConfiguration, directory: Path) -> None:
    """Untrusted where the project here asks for what no human has agreed to."""
    project = rules.repository.project_at(directory)
    if project:
        rules.allowed_of(project)


class Checkup(Struct, frozen=True):
    """`version` is None where a program is not there; `trouble` says why a sandbox fails.

    `sockets_closed_by` says what keeps agents from the user's abstract sockets, or nothing;
    `absent` which program of a kind of service is not installed, or nothing.
    """

    version: Callable[[str], str | None]
    trouble: Callable[[], str | None]
    sockets_closed_by: Callable[[], str]
    absent: Callable[[str], str]

    def machine(self, settings: Settings) -> Iterator[Part]:
        yield self._git()
        yield self._tmux()
        sandbox = self._sandbox(settings)
        yield sandbox
        if not sandbox.costs:
            yield self._sockets()
        for service in settings.services:
            if service.kind:
                yield self._service(service.name, service.kind)
        labels = ", ".join(labels_in(settings))
        if labels:
            yield Part(name="labels", found=f"{labels}: asked of the hosts of a fleet alone")

    def agents(self, logins: Logins, settings: Settings) -> Iterator[Part]:
        for agent in known_agents(settings):
            name, how = f"agent {agent}", logins.harnesses.missing(agent, settings)
            limited = ", ".join(it.name for it in settings.agents if it.fallback == agent)
            skipped = f"; it is skipped as the fallback of {limited}" if limited else ""
            if how:
                costs = f"it can be given no task{skipped}"
                yield Part(name=name, found="not installed", costs=costs, fix=how)
            elif agent == BUILT_IN:
                yield Part(name=name, found="comes with Lockgate")
            else:
                found, login = self._installed(agent, settings), logins.missing(agent, settings)
                costs, fix = (f"{login.why}{skipped}", login.fix) if login else ("", "")
                yield Part(name=name, found=found, costs=costs, fix=fix)

    def _git(self) -> Part:
        version = self.version("git")
        oldest = ".".join(map(str, OLDEST_GIT))
        fix = f"install git {oldest} or later (Debian: apt install git)"
        costs = "nothing works without it"
        if version is None:
            return Part(name="git", found="not installed", costs=costs, fix=fix, needed=True)
        if _numbers(version) < OLDEST_GIT:
            costs = f"it is too old: {oldest} is the oldest that will do"
            return Part(name="git", found=version, costs=costs, fix=fix, needed=True)
        return Part(name="git", found=version, needed=True)

    def _tmux(self) -> Part:
        version = self.version("tmux")
        if version is not None:
            return Part(name="tmux", found=version)
        costs, fix = "no takeover of an agent's session", "install tmux (Debian: apt install tmux)"
        return Part(name="tmux", found="not installed", costs=costs, fix=fix)

    def _sandbox(self, settings: Settings) -> Part:
        if settings.sandbox.level is SandboxLevel.NONE:
            costs = "agents and gates can read and change all that you can"
            fix = 'set [sandbox] level = "auto"'
            return Part(name="sandbox", found="none, as configured", costs=costs, fix=fix)
        why = self.trouble()
        if why is None:
            version = self.version("bwrap") or ""
            return Part(name="sandbox", found=f"bubblewrap {version}, tried and works", needed=True)
        costs = f"no agent and no gate runs: {why}"
        fix = 'install bubblewrap (Debian: apt install bubblewrap), or set [sandbox] level = "none"'
        return Part(name="sandbox", found="does not work", costs=costs, fix=fix, needed=True)

    def _service(self, name: str, kind: ServiceKind) -> Part:
        part, lacks = f"service {name}", self.absent(kind)
        if not lacks:
            return Part(name=part, found=f"{kind} is installed")
        return Part(
            name=part,
            found=f"{lacks} is not installed",
            costs="no agent of this project is started, and no gate of it can judge",
            fix=f"install {kind} (Debian: apt install {INSTALLED_BY[kind]})",
            needed=True,
        )

    def _sockets(self) -> Part:
        name = "abstract sockets"
        if by := self.sockets_closed_by():
            return Part(name=name, found=f"closed to sessions, by {by}")
        costs = "an agent can connect to those of your desktop (X11, the session bus)"
        fix = (
            "install pasta (Debian: apt install passt) and run Lockgate as a normal user, "
            "or use Linux 6.12 or later with Landlock"
        )
        return Part(name=name, found="open to sessions", costs=costs, fix=fix)

    def _installed(self, agent: str, settings: Settings) -> str:
        own = {it.name: it.command[0] for it in settings.agents}
        return self.version(own.get(agent, agent)) or "installed"


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split(".")[:2]
    return tuple(int(it) for it in parts if it.isdecimal())


# One prompt to an agent from where it would work, in a throw-away place.


class Errand(Struct, frozen=True, kw_only=True):
    """What an agent is asked without a task; it finds a candidate's commit where one is named."""

    prompt: str
    seconds: float
    candidate: Candidate | None = None


CONNECTION = Errand(
    prompt="This is a test of the connection. Use no tools. Answer with one word: ready",
    seconds=180.0,
)
SCRIPT = '[[worker]]\nsteps = [ { say = "ready" } ]\n'  # for the agent that plays one


class Outcome(Struct, frozen=True):
    """`why` is empty where it answered."""

    said: str
    why: str
    seconds: float


class Trial(Struct, frozen=True, kw_only=True):
    home: Path
    workspaces: Workspaces
    sessions: Sessions
    harnesses: Harnesses
    credentials: Credentials
    logins: Logins
    chance: Chance

    def begin(self, agent: str, settings: Settings, errand: Errand = CONNECTION) -> SessionId:
        """Refused where the agent is installed and has no login."""
        login = self.logins.missing(agent, settings)
        if login and not self.harnesses.missing(agent, settings):
            raise Refused(f"agent {agent} was not started", why=login.why, fix=login.fix)
        id = SessionId(f"trial-{self.chance.suffix()}")
        start = self._start(id, agent, settings, errand)
        try:
            self._lay_out(start, errand.candidate)
            self.sessions.start(start)
        except BaseException:
            self.forget(id)
            raise
        return id

    def outcome(self, id: SessionId, agent: str, settings: Settings) -> Outcome | None:
        """None while it has not ended."""
        exit = self.sessions.exit_of(id)
        if exit is None:
            return None
        output = self.sessions.output(id)
        report = self.harnesses.read(agent, settings, output, exit)
        why = report.failure or _cut_short(exit)
        if not why and report.limited_until is not None:
            why = "its usage limit is reached"
        return Outcome(report.said, why, exit.seconds)

    def left(self, id: SessionId, name: str) -> str | None:
        """The text of a file that it has written where it worked; None where it has not."""
        return self.workspaces.read(self._place(id) / "desk", name)

    def forget(self, id: SessionId) -> None:
        """Also where it has not ended."""
        self.sessions.remove(id)
        self.workspaces.discard(self._place(id))

    def _place(self, id: SessionId) -> Path:
        return self.home / "trials" / id

    def _lay_out(self, start: Start, candidate: Candidate | None) -> None:
        directory = start.desk.directory
        if candidate:
            self.workspaces.checkout(candidate, directory)
            return
        self.workspaces.write(directory, {})
        self.workspaces.write(directory / ".lockgate", {"script.toml": SCRIPT})
        self.workspaces.write(start.base, {})

    def _start(self, id: SessionId, agent: str, settings: Settings, errand: Errand) -> Start:
        names = self.harnesses.variables(agent, settings)
        job = Job(
            prompt=errand.prompt,
            role=Role.WORKER,
            task="trial",
            session=id,
            environ=self.credentials.of(agent, names),
        )
        it = errand.candidate
        return Start(
            session=id,
            token=self.chance.token(),
            launch=self.harnesses.launch(agent, settings, job),
            desk=Desk(directory=self._place(id) / "desk"),
            home=self._place(id) / "home",
            base=self.workspaces.base(it.project) if it else self._place(id) / "base",
            read=(*self.harnesses.paths(agent, settings), *settings.sandbox.read),
            sandboxed=settings.sandbox.level is SandboxLevel.AUTO,
            wall_seconds=errand.seconds,
            silent_seconds=errand.seconds,
        )


def _cut_short(exit: Exit) -> str:
    return "" if exit.ending is Ending.EXITED else f"it was ended: {exit.ending}"


# Whether a task could be worked on here.


class Readiness(Struct, frozen=True, kw_only=True):
    """`trouble` says why nothing can be enclosed here, if nothing can."""

    store: Store
    repository: Repository
    configuration: Configuration
    harnesses: Harnesses
    logins: Logins
    trouble: Callable[[], str | None]

    def check(self, project: Project, agent: str | None) -> Settings:
        """Refused where the work could not begin: no rules or no yes, no program, login or box."""
        self._must_be_configured(project)
        settings = self.configuration.allowed_of(project)
        name = agent or settings.project.agent
        how = None if names_a_file(name) else self.harnesses.missing(name, settings)
        if how:
            raise Refused(WHAT, why=f"agent {name} is not installed", fix=how)
        login = self.logins.missing(name, settings)
        if login:
            raise Refused(WHAT, why=login.why, fix=login.fix)
        unsigned = self.repository.signing_trouble(project)
        if unsigned:
            raise Refused(WHAT, why=commits.unsigned(unsigned), fix=commits.SIGN)
        why = self.trouble() if settings.sandbox.level is SandboxLevel.AUTO else None
        if why:
            fix = f'lockgate doctor, or do without: [sandbox] level = "none" in {CONFIG}'
            raise Refused(WHAT, why=f"agents run in a sandbox only: {why}", fix=fix)
        return settings

    def branch_for(self, project: Project, summary: str) -> str:
        """Words of the summary, with a number where a branch or a task has that name already."""
        slug = _slug(summary)
        taken = set(self._branches(project))
        names = chain([slug], (f"{slug}-{n}" for n in count(2)))
        return next(
            it for it in names if it not in taken and not self.repository.commit_of(project, it)
        )

    def _must_be_configured(self, project: Project) -> None:
        base = self.repository.base_branch(project)
        if base is None or self.repository.file_at(project, base.commit, CONFIG) is None:
            why = f"{project.name} has no {CONFIG} on {base.name if base else 'its base branch'}"
            raise Refused(WHAT, why=why, fix="lockgate init")

    def _branches(self, project: Project) -> Iterator[str]:
        after = None
        while True:
            page = self.store.page(of_project(project.id), after, BATCH)
            yield from (task.branch for task in page.tasks)
            after = page.after
            if after is None:
                return


def _slug(summary: str) -> str:
    plain = unicodedata.normalize("NFKD", summary.casefold()).encode("ascii", "ignore")
    slug = _OTHER.sub("-", plain.decode()).strip("-")
    if len(slug) > LONGEST:
        slug = slug[: LONGEST + 1].rpartition("-")[0] or slug[:LONGEST]
    return slug or "task"
