"""Git's side of a pull request: one commit of ours on the remote's branch, never over a person's.

What is pushed has the judged tree, not the agent's history. The user's own git talks to the remote,
with their credentials; our refs there are below refs/lockgate/pulls.
"""

import re
from pathlib import Path

from lockgate.adapters.train import targets
from lockgate.adapters.train.candidates import facts_of, hand_of
from lockgate.adapters.train.git import (
    alone,
    answered,
    asked,
    commit_named,
    in_repository,
    signed_commit,
    with_remote,
)
from lockgate.adapters.train.targets import FETCH, ref_of
from lockgate.adapters.workspaces.git import fetched, is_ancestor, words_of
from lockgate.adapters.workspaces.git_files import write_commit
from lockgate.adapters.workspaces.repositories import repositories_of, writing
from lockgate.core.forge.model import Relation
from lockgate.core.train.model import Commit, Tree
from lockgate.errors import Unavailable
from lockgate.ports.forge import Merged, OfferedCommit, Overwrites, Pushed, Refused
from lockgate.ports.train import Target

_HERE = "refs/lockgate/pulls/ours"
_THERE = "refs/lockgate/pulls/theirs"
_QUEUED = "refs/lockgate/pulls/queued"
_PUSH = (
    *("push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed"),
    "--recurse-submodules=no",
)
_PROTECTED = re.compile(r"GH006|GH013")


class GitPullYard:
    """The `PullYard` of ports, over the repositories of one state directory."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def compose(self, target: Target, it: OfferedCommit) -> Commit:
        repos = repositories_of(self.home, target.project)
        first = facts_of(repos.judge, it.parents[0])
        if len(it.parents) == 1 and first.tree == it.tree:
            return it.parents[0]
        hand = hand_of(target, signoff=False)
        seconds = max(facts_of(repos.judge, one).seconds for one in (it.like, *it.parents))
        who = f"{hand.person} {seconds} +0000"
        parents = (f"parent {one}" for one in it.parents)
        lines = (f"tree {it.tree}", *parents, f"author {who}", f"committer {who}")
        text = "\n".join((*lines, "", it.message.rstrip("\n") + "\n"))
        if it.sign:
            return signed_commit(repos, target.project, text)
        return Commit(write_commit(repos.judge, text))

    def push_branch(
        self, target: Target, branch: str, commit: Commit, expected: Commit | None
    ) -> Pushed | Overwrites | Refused:
        repos = repositories_of(self.home, target.project)
        ours, what = f"{_HERE}/{branch}", f"{branch} was not pushed"
        with writing(repos):
            answered(what, repos.judge, "update-ref", ours, commit)
        with alone(target.project):
            copied = in_repository(
                target.project, *FETCH, "--", str(repos.judge), f"+{ours}:{ours}"
            )
            if copied.code != 0:
                raise Unavailable(what, why=words_of(copied), fix="see that the disk has room")
            ref = f"refs/heads/{branch}"
            lease = f"--force-with-lease={ref}:{expected or ''}"
            argv = (*_PUSH, lease, "--", target.remote, f"{commit}:{ref}")
            done = with_remote(target.project, *argv)
        if done.code == 0:
            return Pushed()
        now = self.branch_at(target, branch)
        if now == commit:
            return Pushed()
        if now != expected:
            return Overwrites()
        return Refused(words_of(done))

    def branch_at(self, target: Target, branch: str) -> Commit | None:
        there = f"{_THERE}/{branch}"
        refspec = f"+refs/heads/{branch}:{there}"
        with alone(target.project):
            done = with_remote(target.project, *FETCH, "--", target.remote, refspec)
        if done.code == 0:
            return commit_named(Path(target.project.common_dir), there)
        if "couldn't find remote ref" in done.err:
            return None
        what, fix = f"{branch} was not fetched", f"try it: git fetch {target.remote}"
        raise Unavailable(what, why=words_of(done), fix=fix)

    def relation(self, target: Target, pushed: Commit, head: Commit) -> Relation:
        where = Path(target.project.common_dir)
        if pushed == head:
            return Relation.SAME
        if commit_named(where, head) is None or commit_named(where, pushed) is None:
            return Relation.UNKNOWN
        if is_ancestor(where, pushed, head):
            return Relation.AHEAD
        return Relation.BEHIND if is_ancestor(where, head, pushed) else Relation.REWRITTEN

    def fork(self, target: Target, head: Commit) -> Commit | None:
        done = asked(Path(target.project.common_dir), "merge-base", ref_of(target), head)
        return Commit(done.out.strip()) if done.code == 0 else None

    def bring(self, target: Target, branch: str, head: Commit) -> None:
        """base.git lends to judge.git, and agents fetch from it."""
        repos = repositories_of(self.home, target.project)
        source = Path(target.project.common_dir)
        with writing(repos):
            done = fetched(repos.base, source, f"+{head}:refs/heads/{branch}")
        if done.code != 0:
            what = f"{branch} was not taken from {target.project.root}"
            raise Unavailable(what, why=words_of(done), fix="see that it is whole: git fsck")

    def tree_of(self, target: Target, commit: Commit) -> Tree | None:
        with alone(target.project):
            done = with_remote(target.project, *FETCH, "--", target.remote, f"+{commit}:{_QUEUED}")
        where = Path(target.project.common_dir)
        if done.code != 0 or commit_named(where, commit) is None:
            return None
        repos = repositories_of(self.home, target.project)
        with writing(repos):
            brought = fetched(repos.base, where, f"+{commit}:{_QUEUED}")
        what = f"{commit} was not looked up"
        if brought.code != 0:
            raise Unavailable(what, why=words_of(brought), fix="see that the disk has room")
        return Tree(answered(what, where, "rev-parse", f"{commit}^{{tree}}").strip())

    def contains(self, target: Target, commit: Commit, other: Commit) -> bool:
        return is_ancestor(repositories_of(self.home, target.project).judge, other, commit)

    def delete_branch(self, target: Target, branch: str, expected: Commit) -> bool:
        """Only where it is still at our commit."""
        ref = f"refs/heads/{branch}"
        lease = f"--force-with-lease={ref}:{expected}"
        with alone(target.project):
            done = with_remote(target.project, *_PUSH, lease, "--", target.remote, f":{ref}")
            for mine in (f"{_HERE}/{branch}", f"{_THERE}/{branch}"):
                in_repository(target.project, "update-ref", "-d", mine)
        return done.code == 0

    def merged(self, target: Target, merge: Commit, head: Commit) -> Merged | None:
        targets.look(target)
        where = Path(target.project.common_dir)
        inside = asked(where, "merge-base", "--is-ancestor", merge, ref_of(target))
        if inside.code != 0:
            return None
        what = f"{merge} was not looked up"
        tree = answered(what, where, "rev-parse", f"{merge}^{{tree}}").strip()
        onto = commit_named(where, f"{merge}^1") or merge
        again = asked(where, "merge-tree", "--write-tree", merge, head)
        whole = again.code == 0 and again.out.split("\n", 1)[0] == tree
        return Merged(commit=merge, tree=Tree(tree), onto=onto, whole=whole)


def needs_pull_request(words: str) -> bool:
    """Whether a remote's refusal says that the branch takes pull requests only."""
    return bool(_PROTECTED.search(words))
