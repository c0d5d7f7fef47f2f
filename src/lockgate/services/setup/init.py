"""`init`: look at a repository, write its configuration, commit that one file."""

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.checks import coverage
from lockgate.core.config.settings import Settings
from lockgate.core.discovery import commissioned
from lockgate.core.discovery.commissioned import why_not
from lockgate.core.discovery.found import Plan, Seen, Tree, remarks
from lockgate.core.discovery.packages import discover
from lockgate.core.discovery.repairs import Tried, asked_for, doubtful, told
from lockgate.errors import Refused
from lockgate.ports import Project, Repository
from lockgate.services.setup.rehearsal import Ground, Rehearsal
from lockgate.services.task.callers import Caller, must_be_human
from lockgate.services.task.projects import CONFIG, BaseConfiguration

MESSAGE = "Add Lockgate's configuration"
MOST = 600  # characters of why a proposal was not accepted


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
            return self.render(plan, wanted, site.base)

        settled = rehearsal.settle(proposed.plan, Ground(site.base, tree, read), render)
        return replace(self._made(settled.plan, wanted, site, tree), tried=settled.tried)

    def _made(self, plan: Plan, wanted: Wanted, site: Site, tree: Tree) -> Initialised:
        text = self.render(plan, wanted, site.base)
        return Initialised(
            path=CONFIG,
            base=site.base,
            branch=None,
            text=text,
            plan=plan,
            settings=self.configuration.load(text, CONFIG),
            found=told(plan),
            remarks=remarks(tree),
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
