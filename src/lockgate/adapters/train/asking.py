"""Git as the train asks it, with as few programs as can be: each costs more than what it does."""

from pathlib import Path
from shlex import quote

from lockgate.adapters.run import Finished, run
from lockgate.adapters.workspaces.hardened_git import ENVIRONMENT, LONG, OPTIONS, words_of
from lockgate.core.train.model import Commit
from lockgate.errors import Unavailable

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
