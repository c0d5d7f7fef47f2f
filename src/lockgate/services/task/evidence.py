"""Gathers what a decision may look at. TASK.md is read here, once, and nobody brings their own."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from lockgate.core.config.settings import Settings, known_agents
from lockgate.core.lifecycle.decision import Decision, Evidence, MirrorTask
from lockgate.core.model.agents import NoLogin, digest_in
from lockgate.core.model.secrets import Hide, as_it_is, hiding
from lockgate.core.model.task import Actor, Pinned, Role, Session, Status, Task, TaskId
from lockgate.core.text.task_file import (
    REVIEWER_SECTIONS,
    WORKER_SECTIONS,
    Artifacts,
    Missing,
    Readable,
    TaskText,
    Unreadable,
    frontmatter,
    merge_sections,
    parse_task_artifacts,
    replace_section,
    without_old,
    without_section,
)
from lockgate.errors import BadConfig, Untrusted
from lockgate.ports import (
    Clock,
    Configuration,
    Harnesses,
    Project,
    Repository,
    Secrets,
    Store,
    TaskFiles,
    candidate_of,
)
from lockgate.services.task.callers import Caller
from lockgate.services.task.logins import Logins

BATCH = 100
SECTIONS = {Role.WORKER: WORKER_SECTIONS, Role.REVIEWER: REVIEWER_SECTIONS}


class Look(Struct, frozen=True):
    """The evidence, and the text it is from; `merged` with what a session wrote elsewhere."""

    evidence: Evidence
    body: str | None = None
    merged: bool = False
    tampered: str | None = None
    hide: Hide = as_it_is

    def body_with(self, decision: Decision) -> str | None:
        """The text as the decision has it; a file that is not there stays so."""
        body = self.body
        if body is not None and decision.review is not None:
            body = replace_section(body, "Review", decision.review)
        return without_section(body, decision.drops) if body and decision.drops else body


class Witness(Struct, frozen=True, kw_only=True):
    store: Store
    files: TaskFiles
    repository: Repository
    configuration: Configuration
    harnesses: Harnesses
    logins: Logins
    clock: Clock
    secrets: Secrets
    host: str = ""  # this one's name, where jobs of several are done
    hosts_have_agents: Callable[[Project], bool] = lambda _: False  # of a fleet, for its tasks

    def look(self, id: TaskId, caller: Caller) -> Look:
        task = self.store.load(id)
        canonical = self.files.read(id)
        hide = as_it_is if caller.actor is Actor.HUMAN else self.hide(task)
        found, body, merged = self._artifacts(task, canonical, caller.session, hide)
        project = self.store.project(task.project)
        rules, misconfigured = self._rules(task, project)
        starts = task.pinned is None and misconfigured is None
        untrusted = self._untrusted(project, rules) if starts else None
        evidence = Evidence(
            task=task,
            found=found,
            rules=rules,
            misconfigured=misconfigured,
            untrusted=untrusted,
            agent_missing=self._agent_missing(task, project, rules) if starts else None,
            reviewer=self._reviewer(task, project, rules),
            login_missing=self._login_missing(task, project, rules) if starts else None,
            hosts_have_agents=starts and self.hosts_have_agents(project),
            unsigned=self.repository.signing_trouble(project) if starts else None,
            now=self.clock.now(),
            actor=caller.actor,
            by=caller.by,
            how=caller.how,
            session=caller.session,
            landed=task.status is Status.REVIEWING
            and self.repository.landed(project, _change_of(task), rules.base),
        )
        return Look(evidence, body, merged, self._tampered(task, canonical), hide)

    def can_resume(self, id: TaskId) -> bool:
        """Whether the program of the task's agent can take a conversation up again."""
        task = self.store.load(id)
        settings = self.configuration.settings_for(task, self.store.project(task.project))
        return self.harnesses.can_resume(task.agent, settings)

    def hide(self, task: Task) -> Hide:
        """What takes the values of secrets out of what agents and gates wrote."""
        return hiding(
            self.secrets.of(candidate_of(self.store.project(task.project), task), task.agent)
        )

    def _rules(self, task: Task, project: Project) -> tuple[Pinned, str | None]:
        """The rules the task started with; before that, those of the base commit as it is now."""
        if task.pinned:
            return task.pinned, None
        try:
            return self.configuration.rules_of(project), None
        except BadConfig as error:
            return Pinned(base_commit="", config_hash=""), str(error)

    def _untrusted(self, project: Project, rules: Pinned) -> str | None:
        try:
            self.configuration.allowed_at(project, rules.base_commit)
        except Untrusted as error:
            return error.why
        return None

    def _agent_missing(self, task: Task, project: Project, rules: Pinned) -> str | None:
        settings = self.configuration.settings_at(project, rules.base_commit)
        missing = (self.harnesses.missing(it, settings) for it in _agents(task, rules, settings))
        return next((how for how in missing if how), None)

    def _login_missing(self, task: Task, project: Project, rules: Pinned) -> NoLogin | None:
        settings = self.configuration.settings_at(project, rules.base_commit)
        missing = (self.logins.missing(it, settings) for it in _agents(task, rules, settings))
        return next((it for it in missing if it), None)

    def _reviewer(self, task: Task, project: Project, rules: Pinned) -> str:
        """The project's own agent, where a file works on the task and that agent is installed."""
        if digest_in(task.agent) is None or not rules.base_commit:
            return ""
        settings = self.configuration.settings_at(project, rules.base_commit)
        agent = settings.project.agent
        return "" if self.harnesses.missing(agent, settings) else agent

    def _artifacts(
        self, task: Task, canonical: TaskText, session: Session | None, hide: Hide
    ) -> tuple[Artifacts, str | None, bool]:
        """A session's own sections come from where it works, all else from the canonical file.

        A Handoff or a question that was used before, or stands there twice, is put away.
        """
        ours = canonical.body if isinstance(canonical, Readable) else None
        text, merged = canonical, ours
        if session and session.directory is not None and not self._elsewhere(session):
            text = self.files.read_at(Path(session.directory))
            if isinstance(text, Readable):
                merged = merge_sections(ours or "", hide(text.body), SECTIONS[session.role])
        if not isinstance(text, Readable) or merged is None:
            return _read(text), ours, False
        merged = without_old(merged, task.spent)
        return parse_task_artifacts(merged), merged, merged != ours

    def _elsewhere(self, session: Session) -> bool:
        """Its files are on another host; only who does jobs for several can meet such a session."""
        return bool(self.host and session.host) and session.host != self.host

    def _tampered(self, task: Task, canonical: TaskText) -> str | None:
        """The frontmatter somebody edited; not one that a turn has yet to write."""
        if not isinstance(canonical, Readable) or self.files.shows(canonical, frontmatter(task)):
            return None
        if behind(self.store, task.id):
            return None
        return canonical.frontmatter or "(no frontmatter)"


def behind(store: Store, id: TaskId) -> bool:
    """Whether TASK.md has yet to be written for what was decided."""
    pending = store.pending_effects(id, BATCH)
    return any(isinstance(it.effect, MirrorTask) for it in pending)


def _agents(task: Task, rules: Pinned, settings: Settings) -> list[str]:
    """Its worker's and its reviewers'; one that nobody knows is the spawner's to tell of."""
    named = dict.fromkeys((task.agent, *(gate.agent for gate in rules.gates if gate.agent)))
    return [it for it in named if it in known_agents(settings) or digest_in(it)]


def _read(text: TaskText) -> Artifacts:
    match text:
        case Readable():
            return parse_task_artifacts(text.body)
        case Missing():
            return Artifacts(problems=("TASK.md is missing",))
        case Unreadable():
            return Artifacts(problems=(text.why,))


def _change_of(task: Task) -> str:
    """The commit that was judged; of a task that a human moved by hand, the tip of its branch."""
    return task.candidate or f"refs/heads/{task.branch}"
