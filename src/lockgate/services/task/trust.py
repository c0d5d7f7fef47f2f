"""Trust on first use: what a repository asks for, and what a human has agreed to."""

import hashlib
from collections.abc import Sequence
from posixpath import normpath

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.config.settings import Settings
from lockgate.core.config.trust import (
    Question,
    Request,
    Surroundings,
    from_origin,
    grown,
    origin_of,
    outside_words,
    requests,
)
from lockgate.errors import Untrusted
from lockgate.ports import Granted, Grants, Project, Repository

SHOWN = 10  # requests that a refusal names


class Trust(Struct, frozen=True):
    """`said` are the digests that the environment brings: LOCKGATE_TRUST."""

    repository: Repository
    grants: Grants
    said: frozenset[str] = frozenset()

    def check(self, project: Project, commit: str, settings: Settings) -> None:
        """Untrusted where the settings of this commit ask for what nobody has agreed to."""
        question = self.question(project, commit, settings)
        refused = question.asked if question.new else ()
        if self.grants.of(project).refused != refused:
            self.grants.note(project, refused)
        if question.new:
            raise Untrusted(project.name, wanted(question.new), question.digest)

    def question(self, project: Project, commit: str, settings: Settings) -> Question:
        return self._question(project, self._requests(project, commit, settings))

    def refused(self, project: Project) -> Question:
        """What something was refused for and still would be, whichever commit it was of."""
        known = self.grants.of(project).refused
        return self._question(project, known) if known else Question()

    def grant(self, project: Project, question: Question) -> None:
        if not question.asked:
            return
        known = self.grants.of(project)
        keys = _kept(known, question.origin) | {it.key for it in question.asked}
        self.grants.put(project, Granted(origin=question.origin, keys=keys))
        self.grants.note(project, ())

    def landed(
        self, project: Project, one: tuple[str, Settings], two: tuple[str, Settings]
    ) -> None:
        """From one commit to the other: a human agreed to what the second asks for in addition."""
        before = {it.key for it in self._requests(project, *one)}
        more = grown(self._requests(project, *two), before)
        if more:
            self.grant(project, self._question(project, more))

    def forget(self, project: Project) -> None:
        self.grants.forget(project)

    def _question(self, project: Project, asked: tuple[Request, ...]) -> Question:
        if not asked:
            return Question()
        url = self.repository.origin(project)
        question = Question(asked=asked, origin=origin_of(url) or url)
        if question.digest in self.said or from_origin(origin_of(url), self.grants.origins()):
            return question
        granted = _kept(self.grants.of(project), question.origin)
        return replace(question, new=grown(asked, granted))

    def _requests(self, project: Project, commit: str, settings: Settings) -> tuple[Request, ...]:
        around = Surroundings(
            home=self.grants.home(),
            read={it: self.grants.leads(it) for it in settings.sandbox.read},
            copy=self._copies(project, settings),
            programs=self._programs(project, commit, settings),
        )
        return requests(settings, around)

    def _copies(self, project: Project, settings: Settings) -> dict[str, str]:
        """Those that lead out of the work tree, by links."""
        root = self.grants.leads(project.root)
        found = {it: self.grants.leads(it, root) for it in settings.env.copy}
        return {name: real for name, real in found.items() if not real.startswith(f"{root}/")}

    def _programs(self, project: Project, commit: str, settings: Settings) -> dict[str, str]:
        found: dict[str, str] = {}
        for word in outside_words(settings):
            path = normpath(word.removeprefix(f"{project.root}/"))
            text = self.repository.file_at(project, commit, path)
            if text is not None:
                content = text.encode(errors="surrogateescape")
                found[word] = hashlib.sha256(content).hexdigest()
        return found


def _kept(granted: Granted, origin: str) -> frozenset[str]:
    """What still holds: another origin is another repository, in a place that was used before."""
    return granted.keys if granted.origin in {"", origin} else frozenset()


def wanted(new: Sequence[Request]) -> str:
    told = "; ".join(f"to {it.says}" for it in new[:SHOWN])
    more = len(new) - SHOWN
    return f"{told}; and {more} more (lockgate trust --show)" if more > 0 else told
