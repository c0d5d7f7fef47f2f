"""Pull requests and issues as people see and steer them."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.forge.model import Identity, Intent, Issue, Pull, Rules
from lockgate.core.forge.summary import facts_of
from lockgate.core.lifecycle import pulls as turns
from lockgate.core.model.people import Right
from lockgate.core.model.task import Task, TaskId
from lockgate.core.train.model import Commit
from lockgate.errors import LockgateError, Refused
from lockgate.ports import Project
from lockgate.ports.forge import Forge, Pulls, PullYard, Pushed
from lockgate.ports.train import Target
from lockgate.services.task.callers import Caller, must_be_human
from lockgate.services.task.coordinator import Coordinator
from lockgate.services.train.intake import IssueIntake
from lockgate.services.train.view import TrainView

ADVICE = (
    '{branch} takes pull requests only: set [merge] target = "pull_request" in '
    ".lockgate/config.toml, then run: lockgate forge check"
)


class Checked(Struct, frozen=True, kw_only=True):
    """What a token may do, what the target asks for, and what is missing."""

    me: Identity
    rules: Rules
    target: str
    warnings: tuple[str, ...]

    def facts(self) -> dict[str, object]:
        return {
            "login": self.me.login,
            "kind": self.me.kind,
            "repository": self.me.repo,
            "missing": list(self.me.missing),
            "target": self.target,
            "checks": list(self.rules.checks),
            "approvals": self.rules.approvals,
            "strict": self.rules.strict,
            "queue": self.rules.queue,
            "warnings": list(self.warnings),
        }


class PullControl(Struct, frozen=True, kw_only=True):
    view: TrainView
    pulls: Pulls
    yard: PullYard
    coordinator: Coordinator
    forge_of: Callable[[Project], Forge]
    intake: IssueIntake

    def check(self, project: Project) -> Checked:
        forge, target = self.forge_of(project), self.view.target(project)[0]
        me, rules = forge.whoami(), forge.rules(target.branch)
        return Checked(me=me, rules=rules, target=target.branch, warnings=_warnings(me, rules))

    def watch(self, project: Project) -> None:
        """Issues are looked for in projects that the store knows, also before the first task."""
        if self.view.configuration.settings_of(project).forge.intake.label:
            self.view.store.add_project(project)

    def advised(self, project: Project, branch: str) -> str:
        """What to set where the forge takes pull requests only; empty where nobody can tell."""
        return ADVICE.format(branch=branch) if self.takes_no_push(project, branch) else ""

    def takes_no_push(self, project: Project, branch: str) -> bool:
        """False where nobody can tell: no forge, no login, no answer."""
        try:
            return self.forge_of(project).rules(branch).pull_request
        except LockgateError:
            return False

    def of(self, id: TaskId) -> Pull:
        """Refused where the task has none."""
        pull = self.pulls.of(id)
        if pull is None or not pull.number:
            why = "its change was not offered yet, or does not land by pull requests"
            raise Refused(f"task {id} has no pull request", why=why, fix=f"lockgate task why {id}")
        return pull

    def find(self, id: TaskId) -> Pull | None:
        found = self.pulls.of(id)
        return found if found and found.number else None

    def facts(self, id: TaskId) -> dict[str, object]:
        return dict(facts_of(self.of(id)))

    def restore(self, id: TaskId, caller: Caller) -> Pull:
        """Our commit is put back where a person rewrote or deleted the branch; on their word."""
        what = f"the pull request of task {id} was not restored"
        must_be_human(caller, what, Right.LAND)
        pull, target = self.of(id), self._target(id)
        there = self.yard.branch_at(target, pull.branch)
        ours = Commit(pull.pushed)
        pushed = self.yard.push_branch(target, pull.branch, ours, there)
        if not isinstance(pushed, Pushed):
            why = "the branch moved meanwhile, or the remote refused the push"
            raise Refused(what, why=why, fix=f"look again: lockgate pr show {id}")
        return self._lifted(pull, caller, what)

    def adopt(self, id: TaskId, caller: Caller) -> Pull:
        """What the branch has now is taken as a person's commits; gates judge it next."""
        what = f"the pull request of task {id} was not adopted"
        must_be_human(caller, what, Right.LAND)
        pull, target = self.of(id), self._target(id)
        there = self.yard.branch_at(target, pull.branch)
        if there is None:
            raise Refused(what, why="its branch is gone", fix=f"lockgate pr restore {id}")
        fork = self.yard.fork(target, there)
        if fork is None:
            why = f"it has no history in common with {target.branch}"
            raise Refused(what, why=why, fix=f"lockgate pr restore {id}")
        return self._lifted(replace(pull, pushed=fork), caller, what)

    def issues(self, project: Project) -> tuple[tuple[Issue, str], ...]:
        return self.intake.listed(project, self.forge_of(project))

    def take(self, project: Project, caller: Caller) -> None:
        must_be_human(caller, "no issue was taken", Right.WORK)
        self.intake.sync(project, self.forge_of(project))

    def _lifted(self, pull: Pull, caller: Caller, what: str) -> Pull:
        kept = replace(pull, intent=Intent.NONE, ready=False, waits="a look", looked=0.0)
        self.pulls.put(kept)
        if turns.is_ours(self._task(pull.task).held):
            self.coordinator.turn(pull.task, turns.lifted, caller, what)
        return kept

    def _task(self, id: TaskId) -> Task:
        return self.view.store.load(id)

    def _target(self, id: TaskId) -> Target:
        project = self.view.store.project(self._task(id).project)
        return self.view.target(project)[0]


def _warnings(me: Identity, rules: Rules) -> tuple[str, ...]:
    said = (
        (me.missing, f"the token lacks: {', '.join(me.missing)}"),
        (not me.sees_checks, "it cannot see the checks of other apps: nothing lands by itself"),
        (
            me.kind != "app" and rules.approvals,
            f"@{me.login} opens the pull requests and cannot approve them",
        ),
        (
            not (rules.strict or rules.queue),
            "what lands may differ from what was tested: require branches to be up to date",
        ),
        (rules.signed, "commits must be signed: set [forge] sign = true"),
        (not rules.pull_request, "the branch takes pushes too: protect it"),
    )
    return tuple(words for holds, words in said if holds)
