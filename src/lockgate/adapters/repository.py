"""The user's repository, asked through git. Only `write_file` and `commit_file` change it.

Which branch `init` took for its base is kept in a file of the home, by the project's id.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from lockgate.adapters.run import Finished, run
from lockgate.core.config.settings import HEADS, USUAL, Branch, Branches, base_of, tip_of
from lockgate.core.model.task import ProjectId
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Project, Standing

_WHERE = ("rev-parse", "--path-format=absolute")
_COMMON, _TOP = "--git-common-dir", "--show-toplevel"
_STATUS = ("--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=normal")
_HEAD = "HEAD"
_OBJECTS = "GIT_OBJECT_DIRECTORY"
SIGN_SECONDS = 30.0
_NOBODY = "Please tell me who you are"
LINES, LONGEST = 3, 300  # of what git or a hook says, from its end
_REFS = ("refs/heads", *(f"refs/remotes/*/{it}" for it in (_HEAD, *USUAL)))
_BEFORE_PATH = {"1": 8, "u": 10, "?": 1}  # spaces in a line of it, by its kind


class GitRepository(Struct, frozen=True):
    program: str = "git"
    bases: Path | None = None  # where recorded bases are kept
    fetch: Callable[[Project, str], None] = lambda _project, _commit: None  # from its hub

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
        """The branch whose configuration is trusted, before that configuration names another.

        It is a local one. Where nothing says which, a task takes the one that is checked out.
        """
        if project.url and not Path(project.common_dir).is_dir():
            self.fetch(project, "")
        branches = self._branches(project, self._refs(Path(project.common_dir)))
        found = base_of(replace(branches, fetched={}))
        current = "" if found else self.current_branch(project)
        return found or tip_of(branches, current)

    def record_base(self, project: Project, branch: str) -> None:
        if self.bases is None:
            return
        try:
            self.bases.mkdir(parents=True, exist_ok=True, mode=0o700)
            beside = self.bases / f".{project.id}.new"
            beside.write_text(branch, encoding="utf-8")
            beside.replace(self.bases / project.id)
        except OSError as error:
            what, fix = f"{branch} was not recorded as the base", "see that the home can be written"
            raise Unavailable(what, why=error.strerror or str(error), fix=fix) from error

    def tip(self, project: Project, branch: str, *, fetched_first: bool) -> Branch | None:
        where = Path(project.common_dir)
        remote = _preferred(self._remotes(project))
        found = Branches(
            local={branch: self._commit(where, f"refs/heads/{branch}") or ""},
            fetched={branch: self._commit(where, f"refs/remotes/{remote}/{branch}") or ""},
            remote=remote,
        )
        return tip_of(found, branch, fetched_first=fetched_first)

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

    def standing(self, directory: Path, *, fetched_first: bool = False) -> Standing | None:
        """Git is asked three things at once: people wait for it."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few commands need it

        with ThreadPoolExecutor(2) as pool:
            refs = pool.submit(self._refs, directory)
            status = pool.submit(self._git, directory, "status", *_STATUS)
            project = self.project_at(directory)
        if project is None:
            return None
        told = status.result()
        base = base_of(self._branches(project, refs.result()), fetched_first=fetched_first)
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
        """What this host does not have yet comes from the hub first: else no file is no rule."""
        if project.url and self._commit(Path(project.common_dir), commit) is None:
            self.fetch(project, commit)
        shown = self._git(Path(project.common_dir), "cat-file", "blob", f"{commit}:{path}")
        return shown.out if shown.code == 0 else None

    def origin(self, project: Project) -> str:
        return self._git(Path(project.common_dir), "remote", "get-url", "origin").out.strip()

    def landed(self, project: Project, change: str, target: str) -> bool:
        """By history, or by content: merging it once more would change nothing in the target."""
        where = Path(project.common_dir)
        commit, tip = self._commit(where, change), self.commit_of(project, target)
        if commit is None or tip is None:
            return False
        if self._git(where, "merge-base", "--is-ancestor", commit, tip).code == 0:
            return True
        merged = self._git(where, "merge-tree", "--write-tree", tip, commit)
        tree = self._git(where, "rev-parse", f"{tip}^{{tree}}")
        return merged.code == 0 and merged.out.strip() == tree.out.strip()

    def check_place(self, project: Project, path: str, *, replace: bool) -> None:
        target = Path(project.root) / path
        what = f"{path} was not written"
        if target.is_symlink() or target.parent.is_symlink():
            raise Refused(what, why="a link is in its place", fix="remove the link, then try again")
        if target.exists() and not replace:
            raise Refused(what, why="it is there already", fix="add --force to overwrite it")

    def write_file(self, project: Project, path: str, text: str, *, replace: bool) -> None:
        self.check_place(project, path, replace=replace)
        target = Path(project.root) / path
        what = f"{path} was not written"
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
        for argv in (("add", "--force", "--sparse", "--", path), commit):
            if argv is commit and self._git(root, *unchanged).code == 0:
                break
            done = self._git(root, *argv)
            if done.code != 0:
                raise _not_committed(path, done)
        return self.current_branch(project)

    def _refs(self, directory: Path) -> Sequence[tuple[str, str, str]]:
        """Local branches, and of each remote its HEAD and its usual ones."""
        form = "--format=%(refname)%00%(objectname)%00%(symref)"
        told = self._git(directory, "for-each-ref", form, *_REFS).out.splitlines()
        rows = [line.split("\0") for line in told]
        return [(it[0], it[1], it[2]) for it in rows if len(it) == 3]  # noqa: PLR2004 - as asked

    def _branches(self, project: Project, refs: Sequence[tuple[str, str, str]]) -> Branches:
        """Git is asked for remotes only where that decides whether a branch is the only one."""
        local = {it.removeprefix(HEADS): at for it, at, _ in refs if it.startswith(HEADS)}
        others = [(it.split("/", 3), at, to) for it, at, to in refs if not it.startswith(HEADS)]
        alone = len(local) == 1 and not local.keys() & set(USUAL)
        names = [it[2] for it, _, _ in others]
        remote = _preferred(self._remotes(project) if alone and not names else names)
        theirs = [(it[3], at, to) for it, at, to in others if it[2] == remote]
        default = next((to for name, _, to in theirs if name == _HEAD), "")
        default = default.removeprefix(f"refs/remotes/{remote}/")
        fetched = {default if name == _HEAD else name: at for name, at, _ in theirs}
        return Branches(
            local=local,
            fetched=fetched,
            default=default,
            recorded=self._recorded(project),
            remote=remote,
        )

    def _remotes(self, project: Project) -> Sequence[str]:
        return self._git(Path(project.common_dir), "remote").out.splitlines()

    def _recorded(self, project: Project) -> str:
        """Empty where none is."""
        try:
            return (self.bases / project.id).read_text("utf-8").strip() if self.bases else ""
        except (OSError, UnicodeDecodeError):
            return ""

    def signing_trouble(self, project: Project) -> str | None:
        where = Path(project.common_dir)
        if self._git(where, "config", "--type=bool", "--get", "commit.gpgsign").out != "true\n":
            return None
        tree = self._git(where, "hash-object", "-t", "tree", "/dev/null").out.strip()
        asked = (self.program, f"--git-dir={where}", "commit-tree", "-S", "-m", "A trial", tree)
        with TemporaryDirectory(prefix="lockgate-") as place:  # nothing is written into the clone
            try:
                done = run(asked, deadline=SIGN_SECONDS, environment={_OBJECTS: place})
            except Unavailable as error:
                return error.why
        return None if done.code == 0 else " ".join(done.err.split()) or "git does not say why"

    def _commit(self, directory: Path, name: str) -> str | None:
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        found = self._git(directory, *asked)
        return found.out.strip() if found.code == 0 else None

    def _git(self, directory: Path | None, *argv: str) -> Finished:
        where = ("-C", str(directory)) if directory else ()
        return run((self.program, *where, *argv))


def _not_committed(path: str, done: Finished) -> Unavailable:
    """What git says where it knows no name is a page; that is told in one line."""
    what, commit = f"{path} was written, but not committed", f"git add {path} && git commit {path}"
    said = (done.err or done.out).strip()
    if _NOBODY in said:
        name = 'git config --global user.name "Your Name"'
        fix = f"{name} && git config --global user.email you@example.com && {commit}"
        return Unavailable(what, why="git does not know your name and email address", fix=fix)
    lines = [it.strip() for it in said.splitlines() if it.strip()]
    why = "; ".join(lines[-LINES:])[-LONGEST:] or f"git exited {done.code}"
    return Unavailable(what, why=why, fix=f"commit it yourself: {commit}")


def _preferred(remotes: Sequence[str]) -> str:
    """Empty where there is none."""
    return "origin" if "origin" in remotes else next(iter(remotes), "")


def _paths(lines: Sequence[str]) -> Iterator[str]:
    """A renamed file counts under both its names."""
    for line in lines:
        before = _BEFORE_PATH.get(line[:1])
        if before:
            yield line.split(" ", before)[-1]
