"""Who makes the commits that land, and how they are signed."""

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.repository import GitRepository
from lockgate.adapters.train import GitYard
from lockgate.core.config.settings import MergeStrategy
from lockgate.core.model.commits import Author
from lockgate.errors import Unavailable
from lockgate.ports.train import Load
from tests.adapters.train.sidings import Siding
from tests.adapters.workshop import asked, git

PEOPLE = "%an <%ae>|%cn <%ce>"
USER = "The User <user@localhost>"


@pytest.fixture
def siding(tmp_path) -> Siding:
    it = Siding.at(tmp_path)
    git(it.root, "config", "user.name", "The User")
    git(it.root, "config", "user.email", "user@localhost")
    return it


def by_codex(siding: Siding, author: Author = Author.USER) -> Load:
    return replace(siding.change("t1", {"c.txt": "c\n"}), agent="codex", author=author)


def test_a_merge_is_made_by_the_user(siding) -> None:
    built = siding.built(by_codex(siding))

    assert siding.said(built.commit, PEOPLE) == f"{USER}|{USER}"
    assert "Co-authored-by" not in siding.said(built.commit, "%B")


def test_a_merge_is_made_by_the_configured_identity(siding) -> None:
    load, bot = by_codex(siding), "Release Bot <bot@acme.dev>"
    target = replace(siding.target, identity=bot)

    built = siding.yard.build(target, siding.main, (load,), MergeStrategy.MERGE)

    assert siding.said(built.commit, PEOPLE) == f"{bot}|{bot}"


@pytest.mark.parametrize(
    ("author", "who", "trailer"),
    [
        (Author.USER, USER, True),
        (Author.AGENT, "codex <codex@localhost>", False),
    ],
)
def test_a_squashed_change_says_whose_work_it_is(siding, author, who, trailer) -> None:
    built = siding.built(by_codex(siding, author), by=MergeStrategy.SQUASH)

    assert siding.said(built.commit, PEOPLE) == f"{who}|{USER}"
    told = siding.said(built.commit, "%B")
    assert ("Co-authored-by: codex <codex@localhost>" in told) is trailer


@pytest.mark.parametrize("by", [MergeStrategy.MERGE, MergeStrategy.SQUASH])
def test_a_sign_off_is_added_where_the_user_asked_for_it(siding, by) -> None:
    siding.yard = GitYard(siding.home, signoff=lambda: True)

    built = siding.built(by_codex(siding), by=by)

    assert siding.said(built.commit, "%B").rstrip().endswith(f"Signed-off-by: {USER}")


# --- signatures ---------------------------------------------------------------------------------


@pytest.fixture
def signing(siding: Siding, tmp_path: Path) -> Siding:
    """The user's git signs every commit, by a key that asks for nothing."""
    key = tmp_path / "key"
    words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "user@localhost", "-f", str(key))
    try:
        subprocess.run(words, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs ssh-keygen")
    (tmp_path / "signers").write_text(f"user@localhost {key.with_suffix('.pub').read_text()}")
    for name, value in (
        ("gpg.format", "ssh"),
        ("user.signingkey", str(key)),
        ("gpg.ssh.allowedSignersFile", str(tmp_path / "signers")),
    ):
        git(siding.root, "config", name, value)
    return siding


def sign(siding: Siding) -> None:
    git(siding.root, "config", "commit.gpgsign", "true")


@pytest.mark.parametrize("by", MergeStrategy)
def test_what_lands_is_signed_as_the_users_git_signs(signing, by) -> None:
    load = by_codex(signing)
    sign(signing)

    built = signing.built(load, by=by)

    signers = asked(signing.root, "config", "gpg.ssh.allowedSignersFile")
    form = ("log", "-1", "--format=%G?", built.commit)
    good = asked(signing.repos.judge, "-c", f"gpg.ssh.allowedSignersFile={signers}", *form)
    assert good == "G"
    assert signing.said(built.commit, "%T") == built.tree
    assert signing.said(built.commit, "%cn") == "The User"
    found = asked(signing.root, "rev-list", "--all", "--objects")
    assert built.commit not in found


def test_without_the_wish_nothing_is_signed(signing) -> None:
    built = signing.built(by_codex(signing))

    assert "gpgsig" not in asked(signing.repos.judge, "cat-file", "commit", built.commit)


def test_a_commit_that_cannot_be_signed_is_not_made(siding) -> None:
    load = by_codex(siding)
    git(siding.root, "config", "gpg.format", "ssh")
    git(siding.root, "config", "user.signingkey", "/no/such/key")
    sign(siding)

    with pytest.raises(Unavailable, match="was not signed") as found:
        siding.build(load)

    assert "git config commit.gpgsign false" in found.value.fix


def test_whether_git_can_sign_is_tried_and_leaves_nothing(signing) -> None:
    repository, before = GitRepository(), sorted((signing.root / ".git" / "objects").rglob("*"))
    assert repository.signing_trouble(signing.project) is None  # it is not asked to
    sign(signing)
    assert repository.signing_trouble(signing.project) is None
    git(signing.root, "config", "user.signingkey", "/no/such/key")

    trouble = repository.signing_trouble(signing.project)

    assert trouble is not None
    assert "/no/such/key" in trouble
    assert sorted((signing.root / ".git" / "objects").rglob("*")) == before
