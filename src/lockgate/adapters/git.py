"""The user's repository, asked through git. Only `write_file` and `commit_file` change it."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lockgate.adapters.run import Finished, run
from lockgate.core.model import ProjectId
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Branch, Project, Standing

USUAL_BASES = ("main", "master")
_WHERE = ("rev-parse", "--path-format=absolute")
_COMMON, _TOP = "--git-common-dir", "--show-toplevel"
_STATUS = ("--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=normal")
_BEFORE_PATH = {"1": 8, "u": 10, "?": 1}  # spaces in a line of it, by its kind


@dataclass(frozen=True, slots=True)
class GitRepository:
    program: str = "git"

    def project_at(self, directory: Path) -> Project | None:
        asked = self._git(directory, *_WHERE, _COMMON, _TOP)
        if asked.code != 0 and "not a git repository" in asked.err:
            return None
        if not asked.out:
            what, fix = f"{directory} was not looked at", "do as git says"
            raise Unavailable(what, why=asked.err.strip(), fix=fix)
        found, _, top = asked.out[:-1].partition("\n")
        if "\n" in top:  # a path has one: each by itself
            found, top = (self._git(directory, *_WHERE, it).out[:-1] for it in (_COMMON, _TOP))
        common = Path(os.path.realpath(found))
        bare = common if common.name != ".git" else common.parent
        root = Path(top) if top else bare
        return Project(
            id=ProjectId(hashlib.sha256(os.fsencode(common)).hexdigest()[:16]),
            name=root.name,
            common_dir=str(common),
            root=str(root),
        )

    def valid_branch(self, name: str) -> bool:
        """As git has it, and no name that a command line would take for an option."""
        if not name or name.startswith("-") or not name.isprintable():
            return False
        return self._git(None, "check-ref-format", f"refs/heads/{name}").code == 0

    def base_branch(self, project: Project) -> Branch | None:
        """The branch whose configuration is trusted, before that configuration names another."""
        for name in (*USUAL_BASES, ""):
            named = name or self.current_branch(project)
            commit = self.commit_of(project, named) if named else None
            if commit:
                return Branch(named, commit)
        return None

    def current_branch(self, project: Project) -> str:
        """Empty where no branch is checked out."""
        return self._git(
            Path(project.root), "symbolic-ref", "--short", "--quiet", "HEAD"
        ).out.strip()

    def default_branches(self, project: Project) -> tuple[str, ...]:
        """Each remote's HEAD names one, as `git clone` wrote it down."""
        asked = ("for-each-ref", "--format=%(refname) %(symref)", "refs/remotes/**/HEAD")
        pairs = (
            it.split(" ", 1) for it in self._git(Path(project.common_dir), *asked).out.splitlines()
        )
        return tuple(
            target.removeprefix(name.removesuffix("HEAD")) for name, target in pairs if target
        )

    def commit_of(self, project: Project, branch: str) -> str | None:
        return self._commit(Path(project.common_dir), f"refs/heads/{branch}")

    def revision(self, project: Project, name: str) -> str | None:
        return self._commit(Path(project.root), name)

    def tree_of(self, project: Project, commit: str) -> str | None:
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{tree}}")
        found = self._git(Path(project.common_dir), *asked)
        return found.out.strip() if found.code == 0 else None

    def standing(self, directory: Path) -> Standing | None:
        """Git is asked three things at once: people wait for it."""
        with ThreadPoolExecutor(2) as pool:
            usual = pool.submit(self._commit, directory, f"refs/heads/{USUAL_BASES[0]}")
            status = pool.submit(self._git, directory, "status", *_STATUS)
            project = self.project_at(directory)
        if project is None:
            return None
        commit, told = usual.result(), status.result()
        base = Branch(USUAL_BASES[0], commit) if commit else self.base_branch(project)
        if told.code != 0:  # a bare repository has no work tree
            head, branch = self.revision(project, "HEAD"), self.current_branch(project)
            return Standing(project=project, base=base, commit=head, branch=branch, edited=())
        lines = told.out.split("\0")
        known = dict(it[2:].split(" ", 1) for it in lines if it.startswith("# "))
        head, branch = known["branch.oid"], known["branch.head"]
        return Standing(
            project=project,
            base=base,
            commit=None if head == "(initial)" else head,
            branch="" if branch == "(detached)" else branch,
            edited=tuple(_paths(lines)),
        )

    def file_at(self, project: Project, commit: str, path: str) -> str | None:
        shown = self._git(Path(project.common_dir), "cat-file", "blob", f"{commit}:{path}")
        return shown.out if shown.code == 0 else None

    def landed(self, project: Project, branch: str, target: str) -> bool:
        """By history, or by content: merging it once more would change nothing in the target."""
        change, tip = self.commit_of(project, branch), self.commit_of(project, target)
        if change is None or tip is None:
            return False
        where = Path(project.common_dir)
        if self._git(where, "merge-base", "--is-ancestor", change, tip).code == 0:
            return True
        merged = self._git(where, "merge-tree", "--write-tree", tip, change)
        tree = self._git(where, "rev-parse", f"{tip}^{{tree}}")
        return merged.code == 0 and merged.out.strip() == tree.out.strip()

    def write_file(self, project: Project, path: str, text: str, *, replace: bool) -> None:
        target = Path(project.root) / path
        what = f"{path} was not written"
        if target.is_symlink() or target.parent.is_symlink():
            raise Refused(what, why="a link is in its place", fix="remove the link, then try again")
        if target.exists() and not replace:
            raise Refused(what, why="it is there already", fix="add --force to overwrite it")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            beside = target.with_name(f".{target.name}.new")
            beside.write_text(text, encoding="utf-8")
            beside.replace(target)
        except OSError as error:
            fix = "see that the directory can be written"
            raise Unavailable(what, why=error.strerror or str(error), fix=fix) from error

    def commit_file(self, project: Project, path: str, message: str) -> str:
        root = Path(project.root)
        commit = ("commit", "--quiet", "--message", message, "--only", "--", path)
        unchanged = ("diff", "--cached", "--quiet", "--", path)
        for argv in (("add", "--", path), commit):
            if argv is commit and self._git(root, *unchanged).code == 0:
                break
            done = self._git(root, *argv)
            if done.code != 0:
                said = (done.err or done.out).strip() or f"git {argv[0]} exited {done.code}"
                raise Unavailable(
                    f"{path} was written, but not committed",
                    why=said,
                    fix=f"commit it yourself: git add {path} && git commit {path}",
                )
        return self.current_branch(project)

    def _commit(self, directory: Path, name: str) -> str | None:
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        found = self._git(directory, *asked)
        return found.out.strip() if found.code == 0 else None

    def _git(self, directory: Path | None, *argv: str) -> Finished:
        where = ("-C", str(directory)) if directory else ()
        return run((self.program, *where, *argv))


def _paths(lines: Sequence[str]) -> Iterator[str]:
    """A renamed file counts under both its names."""
    for line in lines:
        before = _BEFORE_PATH.get(line[:1])
        if before:
            yield line.split(" ", before)[-1]
