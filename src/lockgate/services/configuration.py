"""The project's configuration, read from its trusted base commit and never from a workspace."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lockgate.core.model import Pinned
from lockgate.core.settings import Settings, pin
from lockgate.errors import BadConfig
from lockgate.ports import Project, Repository

CONFIG = ".lockgate/config.toml"


@dataclass(frozen=True, slots=True)
class BaseConfiguration:
    """`load` reads a text (None where base has no such file) or raises BadConfig."""

    repository: Repository
    load: Callable[[str | None, str], Settings]
    digest: Callable[[Settings], str]
    _known: dict[str, Settings] = field(default_factory=dict[str, Settings])  # by commit and path

    def settings_at(self, project: Project, commit: str) -> Settings:
        """A commit does not change, so its configuration is read once."""
        key = f"{project.id} {commit}"
        if key not in self._known:
            text = self.repository.file_at(project, commit, CONFIG)
            self._known[key] = self.load(text, f"{CONFIG} at {commit[:12]}")
        return self._known[key]

    def settings_of(self, project: Project) -> Settings:
        return self._trusted(project)[2]

    def rules_of(self, project: Project) -> Pinned:
        base, commit, settings = self._trusted(project)
        return replace(pin(settings, commit, self.digest(settings)), base=base)

    def rules_at(self, project: Project, commit: str, base: str) -> Pinned:
        settings = self.settings_at(project, commit)
        return replace(pin(settings, commit, self.digest(settings)), base=base)

    def _trusted(self, project: Project) -> tuple[str, str, Settings]:
        """The base branch, its commit and settings; a file there may name another branch."""
        usual = self.repository.base_branch(project)
        commit, text = self._text(project, usual)
        settings = self.load(text, f"{CONFIG} on {usual}")
        named = settings.project.base if text is not None else str(usual)
        if named == usual:
            return named, commit, settings
        commit, text = self._text(project, named)
        return named, commit, self.load(text, f"{CONFIG} on {named}")

    def _text(self, project: Project, branch: str | None) -> tuple[str, str | None]:
        commit = self.repository.commit_of(project, branch) if branch else None
        if commit is None:
            raise BadConfig(
                f"the configuration of {project.name} was not read",
                why=f"branch {branch} has no commit" if branch else "no branch has a commit yet",
                fix="commit something on the base branch, then: lockgate init",
            )
        return commit, self.repository.file_at(project, commit, CONFIG)
