"""`init`: look at a repository, write its configuration, commit that one file.

Before that it runs what was found on base, mends the usual troubles, and breaks a source file.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.baseline import Baseline, Colour, Timed, measured
from lockgate.core.config.checks import coverage
from lockgate.core.config.settings import Settings
from lockgate.core.discovery import commissioned
from lockgate.core.discovery.commissioned import why_not
from lockgate.core.discovery.faults import choice, hurried, patience, planted, to_break
from lockgate.core.discovery.found import Package, Plan, Seen, Tree, gate_name, remarks
from lockgate.core.discovery.packages import discover
from lockgate.core.discovery.repairs import (
    Ran,
    Tried,
    asked_for,
    doubtful,
    held,
    left_out,
    needs_network,
    next_try,
    told,
    why_left_out,
    without_idle,
)
from lockgate.core.discovery.services import about_services, with_services
from lockgate.core.model.gates import CommandGate
from lockgate.core.model.results import Failed, ReportRead, SingleGateResult
from lockgate.errors import Refused
from lockgate.ports import Attempt, Cut, Project, Repository
from lockgate.services.gates.commit_check import Noted
from lockgate.services.gates.runner import Cancelled, Evaluation, GateRunner
from lockgate.services.task.callers import Caller, must_be_human
from lockgate.services.task.projects import CONFIG, BaseConfiguration

ROUNDS = 6  # tries of a package's test command, each with what the one before asked for
TAIL = 20_000  # characters of its output that repairs look at
NO_SET_UP = "the set-up did not finish"
CROWDS = (1, 4, 20)  # source files that are broken at once, until the tests notice
MESSAGE = "Add Lockgate's configuration"
MOST = 600  # characters of why a proposal was not accepted


# Runs what was found on base, mends the usual troubles, and breaks a source file for a test.


class Settled(Struct, frozen=True):
    """The plan as it can pass, and what each of its commands came to."""

    plan: Plan
    tried: tuple[Tried, ...]


class Ground(Struct, frozen=True):
    """The base branch's name, the files of its commit, and how one of them is read."""

    base: str
    tree: Tree
    read: Callable[[str], str]


class Rehearsal(Struct, frozen=True, kw_only=True):
    """Over a home that is thrown away; `say` tells people what is being done.

    `evaluation` is the base commit, by the rules in a text that is not committed yet.
    """

    runner: GateRunner
    noted: Noted
    cancelled: Cancelled
    say: Callable[[str], None]
    evaluation: Callable[[str], Evaluation]
    times: int = 1
    faults: int = 1  # that are planted one after the other, until so many turned it red

    def settle(self, plan: Plan, ground: Ground, render: Callable[[Plan], str]) -> Settled:
        """Each package by itself, so that a red one does not hold the others."""
        packages: list[Package] = []
        tried: list[Tried] = []
        for package in plan.packages:
            found, came = self._package(package, ground, render)
            packages.append(found)
            tried += came
        return Settled(Plan(without_idle(tuple(packages))), tuple(tried))

    def _package(
        self, package: Package, ground: Ground, render: Callable[[Plan], str]
    ) -> tuple[Package, list[Tried]]:
        came: list[Tried] = []
        if package.test:
            package, tests = self._tests(package, ground, render)
            came.append(tests)
            if tests.baseline.colour is Colour.BROKEN and package.typecheck:
                return left_out(package, "typecheck", "see above"), came
        if package.typecheck:
            package, types = self._types(package, ground, render)
            came.append(types)
        return package, came

    def _tests(
        self, package: Package, ground: Ground, render: Callable[[Plan], str]
    ) -> tuple[Package, Tried]:
        name = gate_name("tests", package)
        text = render(Plan((package,)))
        result, ran = self._run(text, name)
        for _ in range(ROUNDS):
            better = None if ran.colour is Colour.GREEN else next_try(package, ran, ground.tree)
            if better is None or self.cancelled():
                break
            package, text = better, render(Plan((better,)))
            result, ran = self._run(text, name)
        tried = self._told(package, ran, self._baseline(text, name, (result, ran)))
        if tried.baseline.colour in {Colour.RED, Colour.BROKEN}:
            return left_out(package, "tests", why_left_out(tried)), tried
        return held(package, ran, ground.base), self._broken(package, ground, text, tried)

    def _types(
        self, package: Package, ground: Ground, render: Callable[[Plan], str]
    ) -> tuple[Package, Tried]:
        name = gate_name("typecheck", package)
        text = render(Plan((package,)))
        result, ran = self._run(text, name)
        better = None if ran.colour is Colour.GREEN else next_try(package, ran, ground.tree)
        if better is not None and better.typecheck == package.typecheck:
            second, again = self._run(render(Plan((better,))), name)
            if again.colour is Colour.GREEN:
                package, result, ran = better, second, again
        tried = self._told(package, ran, self._baseline(text, name, (result, ran)))
        if ran.colour is not Colour.GREEN:
            return left_out(package, "typecheck", why_left_out(tried)), tried
        return package, tried

    def _told(self, package: Package, ran: Ran, baseline: Baseline) -> Tried:
        return Tried(
            baseline=baseline,
            total=ran.total,
            red=len(package.red),
            networked=needs_network(ran),
            late=ran.late,
        )

    def _broken(self, package: Package, ground: Ground, text: str, tried: Tried) -> Tried:
        """With source files broken, one and then more of them, until the command turns red."""
        worth = to_break({it: ground.read(it) for it in choice(package, ground.tree)})
        tried = replace(tried, wanted=min(self.faults, max(len(worth), 1)))
        for number in CROWDS:
            chosen = worth[:number]
            if not chosen or self.cancelled():
                break
            noticed = self._notices(text, tried, chosen)
            (first, _), *others = chosen
            broke = f"{first} and {len(others)} more" if others else first
            tried = replace(tried, broke=broke, noticed=noticed, faults=int(noticed))
            if noticed or number >= len(worth):
                break
        for more in worth[1:] if tried.noticed else ():
            if tried.faults == tried.wanted or self.cancelled():
                break
            tried = replace(tried, faults=tried.faults + self._notices(text, tried, (more,)))
        return tried

    def _notices(self, text: str, tried: Tried, chosen: tuple[tuple[str, str], ...]) -> bool:
        """Whether the command turns red with these files broken."""
        self.say(f"{tried.baseline.name}, with {chosen[-1][0]} broken: it must turn red")
        gate = self._gate(text, tried.baseline.name)
        plants = (planted(*it) for it in chosen)
        broken = replace(
            gate,
            command=" && ".join((*plants, hurried(gate.command))),
            timeout=min(gate.timeout, patience(tried.baseline.seconds)),
        )
        return isinstance(self._once(text, broken)[0], Failed)

    def _baseline(self, text: str, name: str, first: tuple[SingleGateResult, Ran]) -> Baseline:
        runs = [first, *(self._run(text, name) for _ in range(1, self.times))]
        gate = self._gate(text, name)
        timed = tuple(Timed(result, ran.seconds) for result, ran in runs)
        return measured(name, gate.command, timed)

    def _run(self, text: str, name: str) -> tuple[SingleGateResult, Ran]:
        gate = self._gate(text, name)
        self.say(f"{name}: {gate.command}")
        return self._once(text, gate)

    def _once(self, text: str, gate: CommandGate) -> tuple[SingleGateResult, Ran]:
        it = self.evaluation(text)
        alone = replace(it, settings=replace(it.settings, gates=(replace(gate, attempts=1),)))
        self.noted.heard.clear()
        result = self.runner.results(alone, self.cancelled)[0]
        made = self.noted.made.pop(gate.name, [])
        return result, _ran(result, made[-1] if made else None, self.noted)

    def _gate(self, text: str, name: str) -> CommandGate:
        """The text was written for a plan that has it."""
        gates = self.evaluation(text).settings.gates
        return next(it for it in gates if it.name == name and isinstance(it, CommandGate))


def _ran(result: SingleGateResult, last: Attempt | None, noted: Noted) -> Ran:
    baseline = measured("", "", (Timed(result, 0.0),))
    read = noted.heard[-1] if noted.heard else None
    return Ran(
        colour=baseline.colour,
        seconds=last.seconds if last else 0.0,
        said=f"{last.out}\n{last.err}"[-TAIL:] if last else "",
        tests=read.tests if isinstance(read, ReportRead) else None,
        why=baseline.why,
        set_up_failed=baseline.why.startswith(NO_SET_UP),
        late=bool(last and last.cut is Cut.DEADLINE),
    )


# The command itself.


class Wanted(Struct, frozen=True, kw_only=True):
    """What the user asks for. `choose` puts one short question, where somebody is there to answer.

    `yes` takes the first of what could be meant. What an `author` proposes is written only where
    it holds.
    """

    formula: str
    agent: str
    force: bool = False
    commit: bool = True
    test: str = ""
    setup: str = ""
    yes: bool = False
    choose: Callable[[tuple[Seen, ...]], str] | None = None
    author: str = ""  # the agent that proposes the commands
    pulls: bool = False  # changes land by pull requests


class Initialised(Struct, frozen=True, kw_only=True):
    """`branch` is where it was committed, None where it was not."""

    path: str
    base: str
    branch: str | None
    text: str
    plan: Plan
    settings: Settings
    tried: tuple[Tried, ...] = ()
    found: Mapping[str, str]
    remarks: tuple[str, ...] = ()
    unborn: bool = False  # there was no commit to try it on

    @property
    def commands(self) -> bool:
        """Whether there is anything to run."""
        return any(it.test or it.typecheck for it in self.plan.packages)

    @property
    def ready(self) -> bool:
        """Whether a gate judges every change that was seen to pass and to fail."""
        return not coverage(self.settings).hole and any(it.ready for it in self.tried)


class Site(Struct, frozen=True):
    """Where it is written: the base branch, its commit if it has one, the branch checked out."""

    base: str
    commit: str | None
    current: str


class Initialiser(Struct, frozen=True):
    repository: Repository
    look: Callable[[Project, str | None], Tree]
    render: Callable[[Plan, Wanted, str], str]
    configuration: BaseConfiguration

    def site(self, project: Project, wanted: Wanted, caller: Caller) -> Site:
        """Refused where no configuration could be written, before anything is run."""
        must_be_human(caller, "the repository was not set up")
        if project.root == project.common_dir:
            raise Refused(
                "the repository was not set up",
                why="it is bare, and a configuration is a file in a work tree",
                fix="run it in a clone that has one",
            )
        if wanted.author and (wanted.test or wanted.setup):
            raise Refused(
                "the repository was not set up",
                why="--with has an agent name the commands that --test-command and --setup name",
                fix="leave out the one or the others",
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
        if wanted.author and not found:
            raise Refused(
                "the repository was not set up",
                why="nothing was committed yet, so an agent would find nothing",
                fix="commit your files, then run it again",
            )
        self.repository.check_place(project, CONFIG, replace=wanted.force)
        return Site(base, found.commit if found else None, current)

    def propose(self, project: Project, wanted: Wanted, site: Site) -> Initialised:
        """What would be written; nothing is run and nothing is written."""
        tree = self.look(project, site.commit)
        plan = asked_for(discover(tree), wanted.test, wanted.setup)
        choices = doubtful(plan)
        if choices is not None and not wanted.test:
            plan = asked_for(plan, _chosen(choices, wanted), wanted.setup)
        return self._made(plan, wanted, site, tree)

    def commissioned(self, project: Project, site: Site, wanted: Wanted, left: str) -> Initialised:
        """What the agent's file comes to; refused where it cannot be tried."""
        plan = commissioned.proposed(left, wanted.author)
        if isinstance(plan, str):
            raise not_accepted(wanted.author, plan)
        return self._made(plan, wanted, site, self.look(project, site.commit))

    def init(
        self,
        project: Project,
        proposed: Initialised,
        site: Site,
        wanted: Wanted,
        rehearsal: Rehearsal | None,
    ) -> Initialised:
        """Tried on base, written, and committed; what is written has the caller's yes."""
        made = self._tried(project, proposed, site, wanted, rehearsal) if rehearsal else proposed
        why = why_not(made.tried, site.base) if wanted.author else ""
        if why:
            raise not_accepted(wanted.author, why)
        self.repository.write_file(project, CONFIG, made.text, replace=wanted.force)
        trust = self.configuration.trust
        trust.grant(project, trust.question(project, site.commit or "", made.settings))
        self.repository.record_base(project, site.base)
        branch = self.repository.commit_file(project, CONFIG, MESSAGE) if wanted.commit else None
        return replace(made, branch=branch)

    def _tried(
        self,
        project: Project,
        proposed: Initialised,
        site: Site,
        wanted: Wanted,
        rehearsal: Rehearsal,
    ) -> Initialised:
        tree, commit = self.look(project, site.commit), site.commit or ""

        def read(path: str) -> str:
            return self.repository.file_at(project, commit, path) or ""

        def render(plan: Plan) -> str:
            return self.render(with_services(plan, tree), wanted, site.base)

        settled = rehearsal.settle(proposed.plan, Ground(site.base, tree, read), render)
        return replace(self._made(settled.plan, wanted, site, tree), tried=settled.tried)

    def _made(self, plan: Plan, wanted: Wanted, site: Site, tree: Tree) -> Initialised:
        plan = with_services(plan, tree)
        text = self.render(plan, wanted, site.base)
        return Initialised(
            path=CONFIG,
            base=site.base,
            branch=None,
            text=text,
            plan=plan,
            settings=self.configuration.load(text, CONFIG),
            found=told(plan),
            remarks=(*remarks(tree), *about_services(tree)),
            unborn=site.commit is None,
        )


def not_accepted(agent: str, why: str) -> Refused:
    return Refused(
        f"the {agent} agent's set-up was not accepted",
        why=" ".join(why.split())[:MOST],
        fix="nothing was written; ask again, or name the commands yourself:"
        ' lockgate init --test-command "…" --setup "…"',
    )


def _chosen(choices: tuple[Seen, ...], wanted: Wanted) -> str:
    if wanted.yes:
        return choices[0].command if choices else ""
    return wanted.choose(choices) if wanted.choose else ""
