"""What is handed over by a hub: commits of judge.git to it and from it, each by a ref."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from lockgate.adapters.hub.mirror import (
    FETCH,
    LOCK,
    REMOTE,
    asked,
    fetch_commit,
    follow,
    listed,
    refs_in,
    spoken,
    unreached,
)
from lockgate.adapters.workspaces.files import locked
from lockgate.adapters.workspaces.git import commit_at, told
from lockgate.adapters.workspaces.repositories import Repositories, repositories_of, writing
from lockgate.core.hub import SNAPSHOTS, TRAIN, Refs, snapshot_ref
from lockgate.errors import Unavailable
from lockgate.ports import Project

_PUSH = (
    *("push", "--quiet", "--no-verify", "--no-follow-tags", "--no-signed"),
    "--recurse-submodules=no",
)
_MISSING = "couldn't find remote ref"


class GitExchange:
    """The `Exchange` of ports, between the repositories of one home and the hubs."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def follow(self, project: Project, commit: str = "") -> None:
        mirror = Path(project.common_dir)
        if not project.url or (commit and _has(mirror, commit)):
            return
        follow(mirror, project)
        if commit and not _has(mirror, commit):
            fetch_commit(mirror, project, commit)

    def refs(self, project: Project, *patterns: str) -> Refs:
        if not project.url:
            return {}
        done = listed(project.url, *patterns)
        if done.code != 0:
            raise unreached(project, "its refs were not listed", spoken(done))
        return refs_in(done.out)

    def send(self, project: Project, refs: Refs, drop: Sequence[str] = ()) -> None:
        """Each commit under its own name: two hosts that send at once do not meet."""
        if not project.url or not (refs or drop):
            return
        moves = (*(f"+{commit}:{ref}" for ref, commit in refs.items()), *(f":{it}" for it in drop))
        judge = self._of(project).judge
        done = asked(judge, *_PUSH, "--", project.url, *moves)
        if done.code != 0:
            what = "the work was not handed over" if refs else "old refs were not removed"
            raise unreached(project, what, spoken(done))

    def bring(self, project: Project, commits: Iterable[str], task: str = "") -> None:
        if not project.url:
            return
        repos = self._of(project)
        lacking = [it for it in dict.fromkeys(commits) if not _has(repos.judge, it)]
        named = {snapshot_ref(task, it): it for it in lacking} if task else {}
        if not lacking or (named and self._fetched(project, repos, named)):
            return
        found = self._found(project, lacking)
        missing = set(lacking) - set(found.values())
        if missing:
            what = f"commit {min(missing)} was not taken"
            raise unreached(project, what, "no ref there has it; a task's go days after its end")
        self._fetched(project, repos, found)

    def bring_refs(self, project: Project, root: str) -> None:
        found = self.refs(project, f"{root}/*")
        if found:
            self._fetched(project, self._of(project), found)

    def publish(
        self, project: Project, branch: str, commit: str, was: str | None, mark: str
    ) -> str | None:
        if not project.url:
            return None
        ref = f"refs/heads/{branch}"
        lease = f"--force-with-lease={ref}:{was or ''}"
        moves = (f"{commit}:{ref}", f"+{commit}:{mark}")
        done = asked(self._of(project).judge, *_PUSH, lease, "--", project.url, *moves)
        return None if done.code == 0 else f"{branch} was not pushed: {spoken(done)}"

    def bring_notes(self, project: Project, ref: str) -> None:
        if not project.url:
            return
        mirror = Path(project.common_dir)
        with locked(mirror / LOCK):
            done = asked(mirror, *FETCH, "--", REMOTE, f"+{ref}:{ref}")
        if done.code != 0 and _MISSING not in done.err:
            raise unreached(project, "its notes were not fetched", spoken(done))

    def send_notes(self, project: Project, ref: str, *, replace: bool = False) -> bool:
        if not project.url:
            return True
        mirror, moves = Path(project.common_dir), f"{'+' * replace}{ref}:{ref}"
        return asked(mirror, *_PUSH, "--", REMOTE, moves).code == 0

    def _found(self, project: Project, commits: Sequence[str]) -> Refs:
        """Candidates of trains first: there are few of them."""
        train = self._ending(project, TRAIN, commits)
        rest = [it for it in commits if it not in train.values()]
        return {**train, **(self._ending(project, SNAPSHOTS, rest) if rest else {})}

    def _ending(self, project: Project, root: str, commits: Sequence[str]) -> Refs:
        return self.refs(project, *(f"{root}/*/{it}" for it in commits))

    def _fetched(self, project: Project, repos: Repositories, refs: Refs) -> bool:
        """The objects first, then their names: nobody waits for a network with our lock."""
        done = asked(repos.judge, *FETCH, "--", project.url, *refs)
        if done.code != 0 and _MISSING in done.err:
            return False
        if done.code != 0:
            raise unreached(project, "its commits were not taken", spoken(done))
        with writing(repos):
            for ref, commit in refs.items():
                told(f"{commit} was not kept", repos.judge, "update-ref", ref, commit)
        return True

    def _of(self, project: Project) -> Repositories:
        repos = repositories_of(self._home, project)
        if repos.judge.is_dir():
            return repos
        what, fix = f"nothing of {project.name} was exchanged", "try again"
        raise Unavailable(what, why="its repositories are not made yet here", fix=fix)


def _has(git_dir: Path, commit: str) -> bool:
    return git_dir.is_dir() and commit_at(git_dir, commit) is not None
