"""The repositories of a project: its task branches, earlier changes of tasks, and its packs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from lockgate.adapters.workspaces.changes import in_use, set_by
from lockgate.adapters.workspaces.files import size_of
from lockgate.adapters.workspaces.git import commit_at, git, told
from lockgate.adapters.workspaces.repositories import (
    CHANGES,
    PUBLISHED,
    SNAPSHOTS,
    Repositories,
    repositories_of,
    writing,
)
from lockgate.core.hub import OF_TASKS, refs_of, tasks_in
from lockgate.core.orphans import OwnBranch
from lockgate.core.retention import Found, Kind
from lockgate.ports import Project
from lockgate.ports.hub import NO_HUB, Exchange
from lockgate.ports.upkeep import Packing

NEEDED = "refs/lockgate/needed"  # candidates of live tasks, when it was packed last
_REFS = "--format=%(refname) %(objectname)"
_REPACK = ("repack", "-d", "-l", "-q")
_BORROWED = ((*_REPACK, "-a", "--keep-unreachable"), ("prune-packed", "-q"))
_OWN = (
    (*_REPACK, "--cruft", "--cruft-expiration=UNTIL"),
    ("prune-packed", "-q"),
    ("prune", "--expire=UNTIL"),
)


class GitTaskRefs:
    """The TaskRefs port."""

    def __init__(self, home: Path, hub: Exchange = NO_HUB) -> None:
        self._home, self._hub = home, hub

    def found(self, project: Project) -> Iterator[Found]:
        """Their age is their task's: a ref does not say when it was set."""
        repos = repositories_of(self._home, project)
        for kind, root in ((Kind.BRANCH, PUBLISHED), (Kind.SNAPSHOT, SNAPSHOTS)):
            for task in _tasks(repos, root):
                yield Found(kind=kind, name=task, last=0.0, task=task, project=project.id)
        for task in tasks_in(self._hub.refs(project, *(f"{it}/*" for it in OF_TASKS))):
            yield Found(kind=Kind.HUB, name=task, last=0.0, task=task, project=project.id)

    def remove(self, project: Project, it: Found, branch: str) -> bool:
        repos = repositories_of(self._home, project)
        if it.kind is Kind.HUB:
            there = self._hub.refs(project, *(f"{root}/{it.task}/*" for root in OF_TASKS))
            self._hub.send(project, {}, refs_of(there, it.task))
            return bool(there)
        with writing(repos):
            if it.kind is Kind.BRANCH:
                return _remove_branch(repos, project, it.task, branch)
            return _remove_snapshots(repos, it.task)

    def packing(self, project: Project) -> Iterator[Packing]:
        repos = repositories_of(self._home, project)
        for place in _there(repos):
            said = told("the repositories were not looked at", place, "count-objects", "-v")
            facts = {key: int(value) for key, _, value in map(_parted, said.splitlines()) if value}
            refs = sum(1 for it in (place / "refs").rglob("*") if it.is_file())
            yield Packing(
                project=project.id,
                name=place.name,
                loose=facts.get("count", 0) + refs,
                packs=facts.get("packs", 0),
                size=size_of(place),
            )

    def repack(
        self, project: Project, keep_days: float, needed: Sequence[str]
    ) -> Mapping[str, int]:
        repos = repositories_of(self._home, project)
        _name(repos, needed)
        sizes = dict[str, int]()
        for place in _there(repos):
            what = f"{place.name} of {project.name} was not packed"
            with writing(repos):  # its lock files are git's own only while we hold ours
                told(what, place, "pack-refs", "--all", "--prune")
            until = f"{round(keep_days * 86400)}.seconds.ago" if keep_days else "now"
            for argv in _BORROWED if place == repos.base else _OWN:
                told(what, place, *(it.replace("UNTIL", until) for it in argv))
            sizes[place.name] = size_of(place)
        return sizes


def _name(repos: Repositories, needed: Sequence[str]) -> None:
    """Those that judge.git has, and no longer those that were needed before."""
    with writing(repos):
        _drop(repos, [it for it in _refs(repos, NEEDED) if it[1] not in needed])
        for commit in needed:
            if repos.judge.is_dir() and commit_at(repos.judge, commit):
                what = f"commit {commit} was not named"
                told(what, repos.judge, "update-ref", f"{NEEDED}/{commit}", commit)


def _there(repos: Repositories) -> Iterator[Path]:
    yield from (it for it in (repos.base, repos.judge) if it.is_dir() and not it.is_symlink())


def _parted(line: str) -> tuple[str, str, str]:
    key, colon, value = line.partition(": ")
    return key, colon, value if value.isdecimal() else ""


def _tasks(repos: Repositories, root: str) -> dict[str, None]:
    """Which tasks have refs below it."""
    names = (ref.removeprefix(f"{root}/").partition("/")[0] for ref, _ in _refs(repos, root))
    return dict.fromkeys(names)


def _refs(repos: Repositories, root: str) -> list[tuple[str, str]]:
    """Those below it, each with its commit."""
    if not repos.judge.is_dir():
        return []
    said = told("the refs of tasks were not listed", repos.judge, "for-each-ref", _REFS, root)
    return [(ref, commit) for ref, _, commit in (it.partition(" ") for it in said.splitlines())]


# Branches whose task the database does not have.


def own_branches(
    repos: Repositories, project: Project, tasks: Collection[str]
) -> Iterator[OwnBranch]:
    """Those that Lockgate was the last to set, by their own reflog, for none of these tasks."""
    theirs = Path(project.common_dir)
    said = told("the branches were not listed", theirs, "for-each-ref", _REFS, "refs/heads")
    heads = [(ref, commit) for ref, _, commit in (it.partition(" ") for it in said.splitlines())]
    published = [(it[0].removeprefix(f"{PUBLISHED}/"), it[1]) for it in _refs(repos, PUBLISHED)]
    for task, set_to in ((name.partition("/")[0], commit) for name, commit in published):
        for ref, commit in heads if task not in tasks else ():
            if commit == set_to and _set_last(theirs, ref) == set_by(task):
                name = ref.removeprefix("refs/heads/")
                used = in_use(theirs, name) or ""
                kept = _is_kept(repos, task, commit)
                yield OwnBranch(task=task, name=name, commit=commit, kept=kept, used=used)


def remove_own_branch(repos: Repositories, project: Project, it: OwnBranch) -> bool:
    theirs = Path(project.common_dir)
    with writing(repos):
        if git(theirs, "update-ref", "-d", f"refs/heads/{it.name}", it.commit).code != 0:
            return False
        _drop(repos, _refs(repos, f"{PUBLISHED}/{it.task}"))
    return True


def _set_last(theirs: Path, ref: str) -> str:
    """What the reflog says of how it came to be where it is; empty where it has none."""
    return git(theirs, "log", "--walk-reflogs", "-1", "--format=%gs", ref).out.strip()


def _is_kept(repos: Repositories, task: str, commit: str) -> bool:
    names = (f"{CHANGES}/{task}", f"{SNAPSHOTS}/{task}")
    return any(it[1] == commit for name in names for it in _refs(repos, name))


def _remove_branch(repos: Repositories, project: Project, task: str, branch: str) -> bool:
    """Only one that is where Lockgate put it, whose commit judge.git keeps, and nobody is on."""
    theirs, ref = Path(project.common_dir), f"refs/heads/{branch}"
    ours = _refs(repos, f"{PUBLISHED}/{task}")
    tip = commit_at(theirs, ref)
    if tip is None or all(commit != tip for _, commit in ours):
        _drop(repos, ours)  # it went, or it is the user's: either way not ours any more
        return False
    if commit_at(repos.judge, f"{CHANGES}/{task}") != tip or in_use(theirs, branch):
        return False
    if git(theirs, "update-ref", "-d", ref, tip).code != 0:
        return False
    _drop(repos, ours)
    return True


def _remove_snapshots(repos: Repositories, task: str) -> bool:
    """The task's change stays, by the ref that names it; where there is none, so do all."""
    if commit_at(repos.judge, f"{CHANGES}/{task}") is None:
        return False
    _drop(repos, _refs(repos, f"{SNAPSHOTS}/{task}"))
    return True


def _drop(repos: Repositories, refs: list[tuple[str, str]]) -> None:
    what = "refs of a task were not removed"
    for ref, commit in refs:
        told(what, repos.judge, "update-ref", "-d", ref, commit)
