"""What of a user's home no sandbox shows unless it is named itself: keys, logins, histories."""

import os
import pwd
from collections.abc import Iterable
from contextlib import suppress

from lockgate.adapters.sandbox.toolchain import is_there, within

PRIVATE = (
    *(".ssh", ".gnupg", ".pki", ".password-store", ".local/share/keyrings", ".vault-token"),
    *(".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".terraform.d", ".oci"),
    *(".config/containers", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op"),
    *(".netrc", ".git-credentials", ".config/git/credentials", ".npmrc", ".yarnrc.yml", ".pypirc"),
    *(".config/pypoetry", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials"),
    *(".m2/settings.xml", ".gradle/gradle.properties", ".pgpass", ".my.cnf"),
    *(".claude", ".claude.json", ".codex", ".gemini", ".config/opencode"),
    *(".local/share/opencode", ".aider.conf.yml", ".local/state/lockgate"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history"),
)


def private_places(shown: Iterable[str], named: Iterable[str]) -> tuple[str, ...]:
    """Those that lie in what is shown, and that nobody has named, by where they really are."""
    seen, asked = tuple(shown), {os.path.realpath(it) for it in named}
    found = (f"{home}/{name}" for home in _homes() for name in PRIVATE)
    real = dict.fromkeys(os.path.realpath(it) for it in found if is_there(it))
    return tuple(it for it in real if it not in asked and any(within(it, top) for top in seen))


def _homes() -> tuple[str, ...]:
    """As the environment has it, and as the system does."""
    homes = [os.path.expanduser("~")]  # noqa: PTH111 - a string is what bwrap gets
    with suppress(KeyError):
        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)
    return tuple(dict.fromkeys(it.rstrip("/") for it in homes))
