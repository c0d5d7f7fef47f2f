"""Whether a task could be worked on here, asked before anything is made; and a branch for it."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import chain, count

from msgspec import Struct

from lockgate.core.config.settings import SandboxLevel, Settings
from lockgate.core.model import commits
from lockgate.core.model.agents import names_a_file
from lockgate.errors import Refused
from lockgate.ports import Configuration, Harnesses, Project, Repository, Store, TaskFilter
from lockgate.services.task.logins import Logins
from lockgate.services.task.projects import CONFIG

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
