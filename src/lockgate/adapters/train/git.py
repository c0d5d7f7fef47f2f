"""Git as the train asks it, with as few programs as can be: each costs more than what it does."""

import os
import re
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shlex import quote

from lockgate.adapters.run import Finished, run
from lockgate.adapters.workspaces.files import locked
from lockgate.adapters.workspaces.git import ENVIRONMENT, LONG, OPTIONS, words_of
from lockgate.adapters.workspaces.repositories import Repositories
from lockgate.core.model.commits import SIGN
from lockgate.core.train.model import Commit
from lockgate.errors import Unavailable
from lockgate.ports import Project

NAME, EMAIL = "Lockgate", "lockgate@localhost"
_GIT = ("git", "--no-replace-objects", *(part for it in OPTIONS for part in ("-c", it)))


def asked(git_dir: Path, *argv: str) -> Finished:
    """For names, facts and refs only, which no configuration of the user's changes."""
    return run((*_GIT, f"--git-dir={git_dir}", *argv), deadline=LONG)


def answered(what: str, git_dir: Path, *argv: str) -> str:
    """Its output; `what` did not happen where it fails."""
    done = asked(git_dir, *argv)
    if done.code != 0:
        raise failed(what, done)
    return done.out


def scripted(script: str, *arguments: str) -> Finished:
    """Several gits in one go, all of them hardened and in our name."""
    return run(("sh", "-c", f"{_SETTINGS}\n{script}", "sh", *arguments), deadline=LONG)


def commit_named(git_dir: Path, ref: str) -> Commit | None:
    done = asked(git_dir, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    return Commit(done.out.strip()) if done.code == 0 else None


def failed(what: str, done: Finished) -> Unavailable:
    return Unavailable(what, why=words_of(done), fix="do as git says, then try again")


def _settings() -> dict[str, str]:
    """The options are handed down in git's own variables for them."""
    found = ENVIRONMENT | {"GIT_CONFIG_COUNT": str(len(OPTIONS))}
    for number, option in enumerate(OPTIONS):
        key, _, value = option.partition("=")
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    for who in ("AUTHOR", "COMMITTER"):
        found |= {f"GIT_{who}_NAME": NAME, f"GIT_{who}_EMAIL": EMAIL}
    return found


_SETTINGS = "export " + " ".join(quote(f"{name}={it}") for name, it in _settings().items())


# The user's own repository: git as they have configured it, and our lock on it.


LOCK = "lockgate-landing"
REMOTE_SECONDS = 180.0
SLACK = 30.0  # seconds for what was killed to be gone
_WHEN_TOLD = 'read -r go && exec "$@"'
# Hooks are for what the user does; what lands here was judged by gates.
_OPTIONS = (
    "core.hooksPath=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.directory=*",
    "submodule.recurse=false",
)


@contextmanager
def alone(project: Project) -> Generator[None]:
    """No other Lockgate, of this home or another, moves a branch here. Ends with its holder."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(Path(project.common_dir) / LOCK))
        except OSError as error:
            what, fix = f"{project.root} was not changed", "see that its .git can be written"
            raise Unavailable(what, why=str(error), fix=fix) from error
        yield


def in_checkout(tree: Path, *argv: str) -> Finished:
    """With the user's filters, line ends and attributes, in a work tree of theirs."""
    return _run(tree, argv, LONG, {"GIT_REFLOG_ACTION": "lockgate: landed"})


def in_repository(project: Project, *argv: str) -> Finished:
    return _run(_place(project), argv, LONG)


def with_remote(project: Project, *argv: str) -> Finished:
    """With the user's credentials and proxies; it never asks for any, and ends in time."""
    return _run(_place(project), argv, REMOTE_SECONDS)


def push_within(
    project: Project, first: Callable[[], None], seconds: float, *argv: str
) -> Finished:
    """As with_remote. Its time counts from before `first` is called, also while we are stopped."""
    git = _git(_place(project), argv)
    limited = ("timeout", "-s", "KILL", f"{seconds:g}", "sh", "-c", _WHEN_TOLD, "sh", *git)
    return run(limited, deadline=seconds + SLACK, first=first)


def _place(project: Project) -> Path:
    root = Path(project.root)
    return root if root.is_dir() else Path(project.common_dir)


def _run(
    where: Path,
    argv: tuple[str, ...],
    deadline: float,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    return run(_git(where, argv), deadline=deadline, environment=environment)


def _git(where: Path, argv: tuple[str, ...]) -> tuple[str, ...]:
    options = (part for it in _OPTIONS for part in ("-c", it))
    return ("git", "-C", os.fspath(where), *options, *argv)


# Commits signed as the user's own git signs theirs, outside of every sandbox.


SIGN_SECONDS = 30.0
_LINE = re.compile(r"^(author|committer) (.*) <(.*)> (\d+) ([+-]\d{4})$")


def signed_commit(repos: Repositories, project: Project, text: str) -> Commit:
    """The commit that this text describes, with a signature by the user's key."""
    head, _, message = text.partition("\n\n")
    lines = head.split("\n")
    tree = next(it.partition(" ")[2] for it in lines if it.startswith("tree "))
    parents = [it.partition(" ")[2] for it in lines if it.startswith("parent ")]
    above = [word for it in parents for word in ("-p", it)]
    encoding = [it.partition(" ")[2] for it in lines if it.startswith("encoding ")]
    more = [word for it in encoding for word in ("-c", f"i18n.commitEncoding={it}")]
    file = repos.directory / f".message-{secrets.token_hex(4)}"
    where = ("git", *more, f"--git-dir={project.common_dir}")
    try:
        file.write_bytes(message.encode("utf-8", "surrogateescape"))
        asked = (*where, "commit-tree", "-S", *above, "-F", str(file), tree)
        done = run(asked, deadline=SIGN_SECONDS, environment=_people(lines, repos.judge))
    finally:
        file.unlink(missing_ok=True)
    if done.code != 0:
        raise Unavailable("the commit to land was not signed", why=words_of(done), fix=SIGN)
    return Commit(done.out.strip())


def _people(lines: list[str], judge: Path) -> dict[str, str]:
    """The new object goes to judge.git, though the configuration is that of the user's clone."""
    found = {"GIT_OBJECT_DIRECTORY": str(judge / "objects")}
    for match in filter(None, map(_LINE.match, lines)):
        who, name, email, seconds, zone = match.groups()
        facts = {"NAME": name, "EMAIL": email, "DATE": f"@{seconds} {zone}"}
        found |= {f"GIT_{who.upper()}_{key}": value for key, value in facts.items()}
    return found
