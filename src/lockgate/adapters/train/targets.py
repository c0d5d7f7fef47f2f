"""Where a target is, and how its tip comes into the repositories that merges are made in."""

from pathlib import Path

from lockgate.adapters.run import Finished
from lockgate.adapters.train.candidates import Facts, facts_of, mark, marked, name_of
from lockgate.adapters.train.git import alone, asked, commit_named, with_remote
from lockgate.adapters.workspaces.git import COMMIT, fetched, git, words_of
from lockgate.adapters.workspaces.git_files import share_shallow
from lockgate.adapters.workspaces.repositories import Repositories, make_both, writing
from lockgate.core.train.model import Commit
from lockgate.errors import Unavailable
from lockgate.ports.train import Target

FETCH = (
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-prune",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
)


def ref_of(target: Target) -> str:
    return f"refs/{f'remotes/{target.remote}' if target.remote else 'heads'}/{target.branch}"


def shown(target: Target) -> str:
    return f"{target.remote}/{target.branch}" if target.remote else target.branch


def look(target: Target) -> Commit:
    """Where it is now; a remote is asked."""
    if target.remote:
        with alone(target.project):
            ask_remote(target)
    return look_here(target)


def look_here(target: Target) -> Commit:
    """Where it is as far as the user's repository knows."""
    for found in seen(target):
        return found
    raise _gone(target)


def seen(target: Target) -> tuple[Commit, ...]:
    """The same, or none."""
    theirs, ref = Path(target.project.common_dir), ref_of(target)
    found = _written(theirs / ref) or commit_named(theirs, ref)
    return (found,) if found else ()


def ask_remote(target: Target) -> None:
    """Under `alone`. A branch that was rewritten there is simply at another commit."""
    refspec = f"+refs/heads/{target.branch}:{ref_of(target)}"
    done = with_remote(target.project, *FETCH, "--", target.remote, refspec)
    if done.code == 0:
        return
    if "couldn't find remote ref" in done.err:
        raise _gone(target)
    what, fix = f"{shown(target)} was not fetched", f"try it: git fetch {target.remote}"
    raise Unavailable(what, why=words_of(done), fix=fix)


def contains(target: Target, commit: Commit) -> bool:
    """As far as the user's repository knows. A commit that it does not have is not in it."""
    where = Path(target.project.common_dir)
    done = asked(where, "merge-base", "--is-ancestor", commit, ref_of(target))
    if done.code not in {0, 1}:
        look_here(target)
    return done.code == 0


def has_more_history(repos: Repositories, target: Target) -> bool:
    """The user's repository was cut off when it was copied, and is whole now."""
    theirs = Path(target.project.common_dir)
    return (repos.judge / "shallow").exists() and not (theirs / "shallow").exists()


def bring(repos: Repositories, target: Target, commit: Commit) -> Facts:
    """Into base.git, which lends to judge.git, with all that it reaches."""
    deepen = has_more_history(repos, target)
    found = marked(repos, target, commit) if repos.judge.is_dir() and not deepen else None
    if found is not None:
        return found
    source = Path(target.project.common_dir)
    there = f"refs/lockgate/remotes/{name_of(target)}" if target.remote else ref_of(target)
    with writing(repos):
        make_both(repos, target.project, commit)
        copied = _deepened if deepen else fetched
        done = copied(repos.base, source, f"+{commit}:{there}")
        if done.code != 0:
            what = f"{shown(target)} was not taken from {target.project.root}"
            raise Unavailable(what, why=words_of(done), fix="see that it is whole: git fsck")
        share_shallow(repos.base, repos.judge)
        if deepen:
            (repos.judge / "shallow").unlink(missing_ok=True)
        mark(repos, target, commit)
    return facts_of(repos.judge, commit)


def lend(repos: Repositories, target: Target, commit: Commit) -> None:
    """base.git, which clones call origin, gets the branch as it is now."""
    with writing(repos):
        refspec = f"+{commit}:refs/heads/{target.branch}"
        done = fetched(repos.base, Path(target.project.common_dir), refspec)
    if done.code != 0:
        what = f"{shown(target)} was not shown to agents"
        raise Unavailable(what, why=words_of(done), fix="see that it is whole: git fsck")


def _deepened(base: Path, source: Path, refspec: str) -> Finished:
    other_end = "--upload-pack=git -c 'safe.directory=*' upload-pack"
    return git(base, *FETCH, "--unshallow", other_end, "--", str(source), refspec)


def _written(ref: Path) -> Commit | None:
    """A branch in a file of its own, as one is that has just moved; git knows the other ways."""
    try:
        said = ref.read_text(encoding="ascii").rstrip("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return Commit(said) if COMMIT.fullmatch(said) else None


def _gone(target: Target) -> Unavailable:
    branch, remote = target.branch, target.remote
    where = f"remote {remote}" if remote else target.project.root
    again = f"git push {remote} COMMIT:refs/heads/{branch}" if remote else f"git branch {branch}"
    return Unavailable(
        f"nothing lands on {shown(target)}",
        why=f"{where} has no branch {branch} with a commit",
        fix=f"make it again: {again}; or name another base in .lockgate/config.toml",
    )
