"""A commit out of judge.git into a repository that borrows from base.git."""

from pathlib import Path

from lockgate.adapters.run import Finished
from lockgate.adapters.workspaces.hardened_git import fetched, git, words_of
from lockgate.adapters.workspaces.repositories import Repositories

# Nothing waits for the disk: what a crash may take from a clone can be copied again.
_PACK = (
    *("-c", "core.fsync=none", "pack-objects", "--quiet", "--revs", "--local", "--non-empty"),
    "--delta-base-offset",
)


def copied(repos: Repositories, git_dir: Path, commit: str, base_commit: str) -> str | None:
    """What base.git lacks of it, and one that is judge.git too lacks nothing: why not, or None.

    A fetch would start seven programs for the same. What it alone can do is left to it: to find
    out what is there where history is cut off, and to write to another disk.
    """
    if commit == base_commit or repos.judge.is_symlink():
        return None
    cut_off = any((it / "shallow").exists() for it in (repos.base, repos.judge))
    if cut_off or git_dir.stat().st_dev != repos.judge.stat().st_dev:
        done = fetched(git_dir, repos.judge, commit)
    else:
        done = _packed(repos, git_dir, commit, base_commit)
    return None if done.code == 0 else words_of(done)


def _packed(repos: Repositories, git_dir: Path, commit: str, base_commit: str) -> Finished:
    """Only what is judge.git's own, and nothing where that is nothing."""
    (git_dir / "objects" / "pack").mkdir(exist_ok=True)
    wanted = git_dir / "lockgate-wanted"
    wanted.write_text(f"{commit}\n^{base_commit}\n", encoding="ascii")
    try:
        return git(repos.judge, *_PACK, f"{git_dir}/objects/pack/pack", given=wanted)
    finally:
        wanted.unlink()
