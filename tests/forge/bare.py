"""The bare repository behind the test server: what GitHub does with git, and what people push."""

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

PROTECTED = """\
#!/bin/sh
# Refuses pushes to the branches that `protected` names, in the words of GitHub.
while read -r old new ref; do
    code=$(sed -n "s|^$ref ||p" "$GIT_DIR/protected")
    case $code in
        GH006)
            echo "error: GH006: Protected branch update failed for $ref." >&2
            echo "error: Changes must be made through a pull request." >&2
            exit 1 ;;
        GH013)
            echo "error: GH013: Repository rule violations found for $ref." >&2
            echo "- Changes must be made through a pull request." >&2
            exit 1 ;;
    esac
done
"""
SOMEONE = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_COMMITTER_NAME": "GitHub",
    "GIT_COMMITTER_EMAIL": "noreply@github.example",
}


class Conflict(Exception):
    """The two sides do not merge; the message names the files."""


class Bare:
    """A bare repository in which `main` takes no push."""

    def __init__(self, place: Path, files: Mapping[str, str]) -> None:
        self.path = place
        place.mkdir(parents=True)
        self.git("init", "--quiet", "--bare", "--initial-branch=main")
        self.git("config", "http.receivepack", "true")
        self._mergeable: dict[tuple[str, str], str | None] = {}
        tip = self.commit(files, parents=(), message="one", author="maria")
        self.move("main", tip)
        hook = place / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(PROTECTED)
        hook.chmod(0o755)
        self.protect("main")

    def protect(self, branch: str, code: str = "GH006") -> None:
        (self.path / "protected").write_text(f"refs/heads/{branch} {code}\n")

    def git(
        self, *argv: str, check: bool = True, environ: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        done = subprocess.run(
            ["git", *argv],
            cwd=self.path,
            env={"PATH": os.environ["PATH"], "HOME": str(self.path), **SOMEONE, **environ},
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(f"git {' '.join(argv)}: {done.stderr}")
        return done.stdout.strip()

    # --- what is there ---

    def heads(self) -> dict[str, str]:
        """Read as git keeps them: a process for each request would be most of a test's time."""
        refs = self.path / "refs" / "heads"
        packed = self.path / "packed-refs"
        lines = packed.read_text().splitlines() if packed.exists() else []
        found = dict(line.split(" ", 1)[::-1] for line in lines if " refs/heads/" in line)
        heads = {name.removeprefix("refs/heads/"): sha for name, sha in found.items()}
        for it in sorted(refs.rglob("*")):
            if it.is_file() and it.suffix != ".lock":
                heads[it.relative_to(refs).as_posix()] = it.read_text().strip()
        return heads

    def tip(self, branch: str) -> str | None:
        return self.heads().get(branch)

    def tree(self, commit: str) -> str:
        return self.git("rev-parse", f"{commit}^{{tree}}")

    def text(self, commit: str, path: str) -> str:
        return self.git("show", f"{commit}:{path}")

    def holds(self, commit: str, branch: str) -> bool:
        found = self.git("branch", "--contains", commit, "--format=%(refname:short)", check=False)
        return branch in found.splitlines()

    def between(self, base: str, head: str) -> tuple[str, ...]:
        """The commits of `head` that `base` lacks, the oldest first."""
        return tuple(self.git("rev-list", "--reverse", f"{base}..{head}").split())

    def changed(self, base: str, head: str) -> tuple[tuple[str, str, int, int], ...]:
        """Each file that `head` changes: letter, path, lines added, lines taken away."""
        start = self.git("merge-base", base, head)
        named = self.git("diff", "--no-renames", "--name-status", start, head).splitlines()
        letters = {path: letter for letter, path in (line.split("\t") for line in named)}
        counted = (
            line.split("\t") for line in self.git("diff", "--numstat", start, head).splitlines()
        )
        return tuple(
            (
                letters.get(path, "M"),
                path,
                int(added.replace("-", "0")),
                int(gone.replace("-", "0")),
            )
            for added, gone, path in counted
        )

    def behind(self, base: str, head: str) -> bool:
        return bool(self.git("rev-list", "--max-count=1", f"{head}..{base}"))

    def merged_tree(self, base: str, head: str) -> str | None:
        """The tree of a merge, None where the two do not merge."""
        if (base, head) not in self._mergeable:
            found = self.git("merge-tree", "--write-tree", base, head, check=False)
            clean = len(found.splitlines()) == 1
            self._mergeable[base, head] = found if clean else None
        return self._mergeable[base, head]

    # --- what GitHub and people do ---

    def move(self, branch: str, commit: str) -> None:
        self.git("update-ref", f"refs/heads/{branch}", commit)

    def delete(self, branch: str) -> None:
        self.git("update-ref", "-d", f"refs/heads/{branch}")

    def commit(
        self, files: Mapping[str, str], *, parents: tuple[str, ...], message: str, author: str
    ) -> str:
        """A commit with `files` over those of the first parent."""
        with tempfile.NamedTemporaryFile(dir=self.path, prefix="index.") as index:
            Path(index.name).unlink()
            environ = {"GIT_INDEX_FILE": index.name}
            if parents:
                self.git("read-tree", parents[0], environ=environ)
            for path, text in files.items():
                blob = self._blob(text)
                self.git(
                    "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", environ=environ
                )
            tree = self.git("write-tree", environ=environ)
            Path(index.name).touch()
        return self._commit_tree(tree, parents, message, author)

    def land(self, base: str, head: str, method: str, message: str) -> str:
        """The target's new commit: GitHub's own merge, squash or rebase of `head` onto `base`."""
        tree = self.merged_tree(base, head)
        if tree is None:
            raise Conflict(head)
        if method == "squash":
            return self._commit_tree(tree, (base,), message, "GitHub")
        if method == "merge":
            return self._commit_tree(tree, (base, head), message, "GitHub")
        tip = base
        for commit in self.git("rev-list", "--reverse", "--no-merges", f"{base}..{head}").split():
            picked = self.merged_tree(base, commit) or tree
            message = self.git("log", "-1", "--format=%B", commit)
            tip = self._commit_tree(picked, (tip,), message, "GitHub")
        return tip

    def _commit_tree(self, tree: str, parents: tuple[str, ...], message: str, author: str) -> str:
        named = [word for parent in parents for word in ("-p", parent)]
        environ = {"GIT_AUTHOR_NAME": author, "GIT_AUTHOR_EMAIL": f"{author}@people.example"}
        return self.git("commit-tree", tree, *named, "-m", message, environ=environ)

    def _blob(self, text: str) -> str:
        done = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"],
            cwd=self.path,
            input=text.encode(),
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()
