"""Issues with a label become tasks; a task whose issue is not wanted any more is stopped."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.forge.intake import Intake, Live, Skip, Stop, Take, key_of, take
from lockgate.core.forge.model import Access, Issue, Pull
from lockgate.core.lifecycle import landing
from lockgate.core.lifecycle import pulls as turns
from lockgate.core.model.task import Actor, Status, Task, TaskId
from lockgate.errors import TurnDeclined
from lockgate.ports import Project
from lockgate.ports.forge import Forge, Pulls
from lockgate.services.task.callers import Caller
from lockgate.services.task.tasks import NewTask, Tasks
from lockgate.services.train.view import TrainView

ENDED = frozenset({Status.DONE, Status.CANCELLED})
SAYS = "intake"  # the key of our one comment in an issue
BY_ISSUE = Caller(Actor.HUMAN, by="issue")


class IssueIntake(Struct, frozen=True, kw_only=True):
    view: TrainView
    pulls: Pulls
    tasks: Tasks

    def sync(self, project: Project, forge: Forge) -> None:
        """One look at the issues that have the label, or had it."""
        settings = self.view.configuration.settings_of(project).forge.intake
        if not settings.label:
            return
        repository = forge.whoami().repo
        for issue in forge.issues(settings.label, ""):
            it = Intake(
                repository=repository,
                label=settings.label,
                access=_access(forge, issue),
                live=self._live(project),
                most=settings.max_open,
            )
            self._does(project, forge, issue, take(issue, it))
        self._ended(project, forge, repository)

    def listed(self, project: Project, forge: Forge) -> tuple[tuple[Issue, str], ...]:
        """Each issue with its task, or why it makes none."""
        settings = self.view.configuration.settings_of(project).forge.intake
        repository, live = forge.whoami().repo, self._live(project)
        found: list[tuple[Issue, str]] = []
        for issue in forge.issues(settings.label, "") if settings.label else ():
            key = key_of(repository, issue.number)
            it = Intake(
                repository=repository,
                label=settings.label,
                access=_access(forge, issue),
                live=live,
                most=settings.max_open,
            )
            task = f"task {live[key].task}" if key in live else "not wanted"
            found.append((issue, _said(take(issue, it), task)))
        return tuple(found)

    def _live(self, project: Project) -> Mapping[str, Live]:
        found: dict[str, Live] = {}
        for pull in self.pulls.all(project.id):
            task = self.view.store.find(pull.task)
            if pull.issue and task and task.status not in ENDED:
                found[pull.issue] = Live(task.id, begun=task.status is not Status.PENDING)
        return found

    def _does(
        self, project: Project, forge: Forge, issue: Issue, act: Take | Skip | Stop | None
    ) -> None:
        match act:
            case Take():
                task = self._made(project, act)
                forge.comment(issue.number, SAYS, f"Task `{task.id}` works on this.")
            case Skip(why, told=True):
                forge.comment(issue.number, SAYS, why)
            case Stop(task, why, hold):
                self._stops(TaskId(task), why, hold=hold)
            case Skip() | None:
                pass

    def _made(self, project: Project, act: Take) -> Task:
        """One that a crash left without its row is found by its branch."""
        known = [
            it for it in self.view.store.on_branch(project.id, act.branch) if it.status not in ENDED
        ]
        task = known[0] if known else self.tasks.create(project, _asked(act), BY_ISSUE)
        self.pulls.put(Pull(task=task.id, project=project.id, issue=act.key))
        return task

    def _stops(self, id: TaskId, why: str, *, hold: bool) -> None:
        """One that has not begun is not started; one that waits to land is held."""
        coordinator = self.tasks.coordinator
        try:
            if hold:
                coordinator.turn(id, lambda seen: landing.held(seen, why))
            else:
                coordinator.turn(id, lambda seen: turns.not_started(seen, why))
        except TurnDeclined:
            return  # it is at work: what comes of it is held when it waits to land

    def _ended(self, project: Project, forge: Forge, repository: str) -> None:
        """An issue that its keyword did not close is closed once its task is done."""
        for pull in self.pulls.all(project.id):
            task = self.view.store.find(pull.task)
            if not (pull.issue.startswith(f"{repository}#") and task):
                continue
            if task.status is Status.DONE:
                number = int(pull.issue.rpartition("#")[2])
                forge.comment(number, SAYS, f"Task `{task.id}` landed as {task.landed[:12]}.")
                forge.close_issue(number)
                self.pulls.put(replace(pull, issue=""))


def _said(act: Take | Skip | Stop | None, otherwise: str) -> str:
    match act:
        case Skip(why) | Stop(_, why):
            return why
        case Take():
            return "becomes a task"
        case None:
            return otherwise


def _asked(act: Take) -> NewTask:
    return NewTask(branch=act.branch, summary=act.summary, context=act.context)


def _access(forge: Forge, issue: Issue) -> Mapping[str, Access]:
    asked = {issue.labelled_by, *(it.by.login for it in issue.comments if not it.by.bot)}
    return {who: forge.may(who) for who in sorted(asked) if who}
