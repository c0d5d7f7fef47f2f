"""Which rules a commit is judged by, and which of its gates need no task and no agent."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from lockgate.core.config.checks import why_unjudged
from lockgate.core.config.settings import Branch, Settings, Target, pin
from lockgate.core.config.trust import Question
from lockgate.core.model.findings import Finding, by_priority
from lockgate.core.model.gates import CommandGate, Gate, Report
from lockgate.core.model.results import (
    Broken,
    Failed,
    Passed,
    ReportRead,
    SingleGateResult,
    Unreadable,
    Waiting,
)
from lockgate.core.model.task import Pinned
from lockgate.core.text.steering import asked_of, shown_first
from lockgate.errors import BadConfig, Refused
from lockgate.ports import (
    Attempt,
    Candidate,
    GateRun,
    GateRuns,
    Project,
    Repository,
    Standing,
    Workspaces,
)
from lockgate.services.gates.runner import Cancelled, Evaluation, Facts, GateRunner, Tell
from lockgate.services.task.projects import CONFIG, BaseConfiguration

HEAD = "head"  # no task has this id
WHAT = "no gate was run"


class Asked(Struct, frozen=True):
    """A revision to take the rules from, and the gates that are wanted; none means all.

    `target` is the branch that a build server names, `in_ci` says that one runs us: what the remote
    has then counts more than local branches, which the build server made of the change.
    """

    base: str | None = None
    gates: tuple[str, ...] = ()
    target: Target | None = None
    in_ci: bool = False


class Unjudged(Struct, frozen=True):
    """A gate that this cannot judge, and why."""

    gate: Gate
    why: str


class Case(Struct, frozen=True, kw_only=True):
    """What is judged, by whose rules, and what is left out."""

    candidate: Candidate
    branch: str
    settings: Settings  # with the gates that are judged, and no others
    rules: str  # where they are from, for people
    unjudged: tuple[Unjudged, ...]
    edited: tuple[str, ...]

    @property
    def project(self) -> Project:
        return self.candidate.project

    @property
    def pinned(self) -> Pinned:
        return self.candidate.rules or Pinned(base_commit="", config_hash="")


class Rulebook(Struct, frozen=True):
    """Which rules a commit is judged by; it asks git, and runs nothing."""

    repository: Repository
    configuration: BaseConfiguration

    def settings(self, directory: Path, asked: Asked) -> tuple[Settings, str]:
        """The rules themselves, and where they are from."""
        here, _ = self._standing(directory, asked)
        _, commit, said = self._base(here, asked)
        return self._settings(here.project, commit, said), said

    def question(self, directory: Path, asked: Asked) -> tuple[Project, Question]:
        """What the rules ask for beyond the sandboxed default."""
        here, _ = self._standing(directory, asked)
        _, commit, said = self._base(here, asked)
        settings = self._settings(here.project, commit, said)
        return here.project, self.configuration.trust.question(here.project, commit, settings)

    def case(self, directory: Path, asked: Asked) -> Case:
        here, head = self._standing(directory, asked)
        project = here.project
        base, commit, said = self._base(here, asked)
        settings = self._settings(project, commit, said)
        _must_be_there(asked.gates, settings)
        self.configuration.allowed_at(project, commit)
        pinned = self.configuration.rules_at(project, commit, base)
        unjudged = tuple(_unjudged(settings, asked, compared=commit != head))
        left_out = {it.gate.name for it in unjudged}
        return Case(
            candidate=Candidate(project=project, commit=head, rules=pinned, name=HEAD),
            branch=here.branch or "HEAD",
            settings=replace(
                settings, gates=tuple(it for it in settings.gates if it.name not in left_out)
            ),
            rules=said,
            unjudged=unjudged,
            edited=here.edited,
        )

    def _standing(self, directory: Path, asked: Asked) -> tuple[Standing, str]:
        """And the commit there, without which nothing can be judged."""
        here = self.repository.standing(directory, fetched_first=asked.in_ci)
        if here is None:
            why, fix = f"{directory} is not inside a git repository", "change into one"
            raise Refused(WHAT, why=why, fix=fix)
        if here.commit is None:
            raise Refused(WHAT, why="HEAD has no commit yet", fix="commit something first")
        return here, here.commit

    def _base(self, here: Standing, asked: Asked) -> tuple[str, str, str]:
        """The base branch, the commit with the rules, and the same in words."""
        if asked.base is not None:
            return self._named(here, asked.base)
        base = self._target(here, asked.target) if asked.target else self._usual(here, asked)
        return base.name, base.commit, f"{base.ref or base.name} ({base.commit[:12]})"

    def _named(self, here: Standing, name: str) -> tuple[str, str, str]:
        commit = self.repository.revision(here.project, name)
        if commit is None:
            fix = "name a branch, a tag or a commit that this repository has; fetch it first"
            raise BadConfig(WHAT, why=f"git knows no revision {name!r}", fix=fix)
        return here.base.name if here.base else "main", commit, f"{name} ({commit[:12]})"

    def _target(self, here: Standing, target: Target) -> Branch:
        """As it is: the rules of the branch that the change is to be merged into."""
        name = target.branch
        valid = self.repository.valid_branch(name)
        found = self.repository.tip(here.project, name, fetched_first=True) if valid else None
        if found is None:
            raise BadConfig(
                WHAT,
                why=f"{target.variable} says that the target branch is {name!r}, and this"
                " repository has no such branch, neither its remote's nor a local one",
                fix=f"git fetch origin +refs/heads/{name}:refs/remotes/origin/{name}"
                " (with its history), then run it again; or name another: --base REV",
            )
        return found

    def _usual(self, here: Standing, asked: Asked) -> Branch:
        if here.base is None:
            raise BadConfig(
                WHAT,
                why="the base branch is not known: no variable of a build server names it, the"
                " remote's HEAD is not known here, no base is recorded in the home, and there"
                " is no branch main or master",
                fix="name it: lockgate gate run --base BRANCH; or have git ask the remote:"
                " git remote set-head origin --auto",
            )
        tip = partial(self.repository.tip, fetched_first=asked.in_ci)
        return self.configuration.trusted(here.project, here.base, tip)

    def _settings(self, project: Project, commit: str, said: str) -> Settings:
        written = self.configuration.written_at(project, commit)
        if not written.there:
            raise BadConfig(
                WHAT,
                why=f"there is no {CONFIG} on {said}, so there is no gate to run",
                fix="lockgate init writes and commits one; or name where one is: --base REV",
            )
        return written.settings


def of_head(it: Candidate, branch: str, files: tuple[str, ...], settings: Settings) -> Evaluation:
    """A commit alone: no task, so no gate has passed on it and no human has answered."""
    facts = Facts(goal=f"HEAD of {it.project.name}", branch=branch, agent=settings.project.agent)
    return Evaluation(candidate=it, facts=facts, files=files, settings=settings)


def _must_be_there(names: tuple[str, ...], settings: Settings) -> None:
    known = [it.name for it in settings.gates]
    for name in names:
        if name not in known:
            fix = f"there are: {', '.join(known) or 'none'}"
            raise BadConfig(WHAT, why=f"no gate is called {name!r}", fix=fix)


def _unjudged(settings: Settings, asked: Asked, *, compared: bool) -> Iterator[Unjudged]:
    for gate in settings.gates:
        why = why_unjudged(gate, compared=compared)
        if asked.gates and gate.name not in asked.gates:
            yield Unjudged(gate, "it was not asked for")
        elif why:
            yield Unjudged(gate, why)


# The gates on HEAD of any repository, with no task and no agent: nothing of it is kept.


class Noted(Struct, frozen=True):
    """The gates' commands, and what each attempt came to: a failure alone does not say."""

    gates: GateRuns
    made: dict[str, list[Attempt]] = field(default_factory=dict[str, list[Attempt]])
    heard: list[ReportRead | Unreadable] = field(default_factory=list[ReportRead | Unreadable])

    def attempt(self, gate: CommandGate, run: GateRun, cancelled: Callable[[], bool]) -> Attempt:
        attempt = self.gates.attempt(gate, run, cancelled)
        self.made.setdefault(gate.name, []).append(attempt)
        return attempt

    def read(self, attempt: Attempt, wanted: Report | None) -> ReportRead | Unreadable:
        self.heard.append(self.gates.read(attempt, wanted))
        return self.heard[-1]


class Judged(Struct, frozen=True, kw_only=True):
    """What people are told of one gate: its result, what it took, what it found."""

    gate: Gate
    result: str
    why: str = ""
    seconds: float = 0.0
    level: str = ""
    attempts: int = 0
    tests: int | None = None
    findings: tuple[Finding, ...] = ()


class SpotCheck(Struct, frozen=True):
    """Over a home that is thrown away."""

    workspaces: Workspaces
    runner: GateRunner

    def judge(
        self, case: Case, cancelled: Cancelled, tell: Tell, afterwards: ExitStack
    ) -> tuple[tuple[SingleGateResult, ...], tuple[str, ...]]:
        """The results in order, as far as it came, and the files that a human would be asked of."""
        files = self.workspaces.changed_files(case.candidate)
        evaluation = of_head(case.candidate, case.branch, files, case.settings)
        results = self.runner.results(evaluation, cancelled, tell, afterwards)
        asked = (file for it in results if isinstance(it, Passed) for file in it.asks)
        rules = case.candidate.rules
        protected = asked_of(shown_first(files, rules), rules) if rules else ()
        return results, tuple(dict.fromkeys((*protected, *asked)))


def judged(gate: Gate, result: SingleGateResult, made: Sequence[Attempt]) -> Judged:
    told = Judged(
        gate=gate,
        result="broken",
        seconds=sum(it.seconds for it in made),
        level=made[-1].level if made else "",
        attempts=len(made),
    )
    match result:
        case Passed(_, proof, findings) if proof.sandbox:
            tests = None if proof.tests_passed is None else len(proof.tests_passed)
            found = by_priority(findings)
            return replace(told, result="passed", tests=tests, findings=found)
        case Passed(_, proof, _):
            return replace(told, result="skipped", why=" ".join(proof.ran))
        case Failed(_, findings):
            return replace(told, result="failed", findings=by_priority(findings))
        case Waiting(_, why):
            return replace(told, result="waiting", why=why)
        case Broken(_, why):
            return replace(told, why=why)


def on_base(
    project: Project, configuration: BaseConfiguration, text: str, where: tuple[str, str]
) -> Evaluation:
    """The base branch at its commit, by a configuration that is not there yet."""
    branch, commit = where
    settings = configuration.load(text, CONFIG)
    pinned = replace(pin(settings, commit, configuration.digest(settings)), base=branch)
    candidate = Candidate(project=project, commit=commit, rules=pinned, name=HEAD)
    return of_head(candidate, "HEAD", (), settings)
