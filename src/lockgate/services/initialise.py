"""`init`: look at a repository, write its configuration, commit that one file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lockgate.core.config.baseline import Baseline
from lockgate.core.config.settings import Settings
from lockgate.errors import Refused
from lockgate.ports import Project, Repository
from lockgate.services.callers import Caller, must_be_human
from lockgate.services.configuration import CONFIG, BaseConfiguration

MESSAGE = "Add Lockgate's configuration"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A configuration that loads, and what was found for it: key to command and its source."""

    text: str
    found: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    formula: str
    agent: str
    force: bool = False
    commit: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Initialised:
    """`branch` is where it was committed, None where it was not."""

    path: str
    base: str
    branch: str | None
    found: Mapping[str, str]
    settings: Settings
    baselines: tuple[Baseline, ...] = ()


# The configuration's text and the base branch: what its commands come to there.
Measure = Callable[[str, str], tuple[Baseline, ...]]


@dataclass(frozen=True, slots=True)
class Initialiser:
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
