"""`init`: look at a repository, write its configuration, commit that one file."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, count
from pathlib import Path

from msgspec import Struct

from lockgate.core.config.baseline import Baseline
from lockgate.core.config.settings import SandboxLevel, Settings
from lockgate.core.model import commits
from lockgate.core.model.agents import names_a_file
from lockgate.errors import Refused
from lockgate.ports import Configuration, Harnesses, Project, Repository, Store, TaskFilter
from lockgate.services.task.callers import Caller, must_be_human
from lockgate.services.task.logins import Logins
from lockgate.services.task.projects import CONFIG, BaseConfiguration

MESSAGE = "Add Lockgate's configuration"


class Proposal(Struct, frozen=True):
    """A configuration that loads, and what was found for it: key to command and its source."""

    text: str
    found: Mapping[str, str]


class Wanted(Struct, frozen=True, kw_only=True):
    formula: str
    agent: str
    force: bool = False
    commit: bool = True


class Initialised(Struct, frozen=True, kw_only=True):
    """`branch` is where it was committed, None where it was not."""

    path: str
    base: str
    branch: str | None
    found: Mapping[str, str]
    settings: Settings
    baselines: tuple[Baseline, ...] = ()


# The configuration's text and the base branch: what its commands come to there.
Measure = Callable[[str, str], tuple[Baseline, ...]]


class Initialiser(Struct, frozen=True):
    repository: Repository
    propose: Callable[[Path, Wanted, str], Proposal]
    configuration: BaseConfiguration

    def init(
        self, project: Project, wanted: Wanted, caller: Caller, measure: Measure | None = None
    ) -> Initialised:
        """What is measured is told and refuses nothing; what is written has the caller's yes."""
        must_be_human(caller, "the repository was not set up")
        if project.root == project.common_dir:
            raise Refused(
                "the repository was not set up",
                why="it is bare, and a configuration is a file in a work tree",
                fix="run it in a clone that has one",
            )
        current = self.repository.current_branch(project)
        found = self.repository.base_branch(project)
        base = found.name if found else current
        if not base or (wanted.commit and not current):
            raise Refused(
                "the repository was not set up",
                why="HEAD is detached: a commit here would be on no branch",
                fix=f"git checkout {base or 'main'}, then run it again",
            )
        proposal = self.propose(Path(project.root), wanted, base)
        self.repository.write_file(project, CONFIG, proposal.text, replace=wanted.force)
        settings = self.configuration.load(proposal.text, CONFIG)
        trust, commit = self.configuration.trust, found.commit if found else ""
        trust.grant(project, trust.question(project, commit, settings))
        measured = measure(proposal.text, base) if measure else ()
        self.repository.record_base(project, base)
        branch = self.repository.commit_file(project, CONFIG, MESSAGE) if wanted.commit else None
        return Initialised(
            path=CONFIG,
            base=base,
            branch=branch,
            found=proposal.found,
            settings=settings,
            baselines=measured,
        )


# Whether a task could be worked on here, asked before anything is made; and a branch for it.


WHAT = "the task was not created"
LONGEST = 40  # characters of a branch that is made of a summary
BATCH = 1000
_OTHER = re.compile(r"[^a-z0-9]+")


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
            page = self.store.page(TaskFilter(project.id), after, BATCH)
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
