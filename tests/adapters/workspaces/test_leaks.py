"""Work that has the value of a secret in it: it goes back, and nothing of it is kept."""

import base64
import os
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from lockgate.core.model.findings import Location, Priority
from lockgate.core.model.secrets import Secret, forms_of
from lockgate.ports import Unfit
from tests.adapters.workshop import BARE_AT_LENGTH, BOXED, Workshop, asked

KEY = "sk-ant-api03/AbC+dEfGhIjKl=mN"
SECRET = Secret("ANTHROPIC_API_KEY", KEY)
COMMITS = pytest.mark.parametrize("then", ["true", "git add -A; git commit -qm all"])
WRITTEN = {
    "plain": KEY.encode(),
    "in a line": f"key = '{KEY}'\n".encode(),
    "base64": base64.b64encode(KEY.encode()),
    "base64 at the second place": base64.b64encode(f"x{KEY}".encode()),
    "base64 at the third place": base64.b64encode(f"xx{KEY}!".encode()),
    "base64 over several lines": base64.encodebytes(b"x" * 40 + KEY.encode() + b"y" * 70),
    "percent-encoded": f"https://x/?k={quote(KEY, safe='')}".encode(),
    "binary": os.urandom(3000) + b"\0" + KEY.encode() + os.urandom(3000),
    "far down": b"line\n" * 1_200_000 + KEY.encode(),
}


@pytest.fixture(params=[BOXED, BARE_AT_LENGTH])
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Workshop:
    made = Workshop.at(tmp_path, sandboxed=request.param)
    made.secrets = (SECRET,)
    return made


def _begun(shop: Workshop):
    task = shop.task()
    shop.workspaces.prepare(shop.project, task)
    return task


def _holds_nothing(shop: Workshop) -> None:
    """No file of the home but the clone, and no object of git's, holds the value in any form."""
    clone = shop.home / "workspaces"
    for file in shop.home.rglob("*"):
        if file.is_file() and clone not in file.parents:
            data = file.read_bytes()
            assert not [it for it in forms_of(SECRET) if it in data], file
    everything = ("cat-file", "--batch", "--batch-all-objects", "--unordered")
    where = ("git", f"--git-dir={shop.judge}")
    objects = subprocess.run((*where, *everything), capture_output=True, check=True).stdout
    assert not [it for it in forms_of(SECRET) if it in objects]


@pytest.mark.parametrize("content", WRITTEN.values(), ids=WRITTEN)
@COMMITS
@pytest.mark.unmeasured
def test_a_file_with_a_secret_is_a_finding_without_its_value(shop, content, then) -> None:
    task = _begun(shop)
    place = shop.workspaces.place(task.id)
    (place / "conf").write_bytes(b"first\n" + content)
    shop.agent(task, f"echo n > new; {then}")

    found = shop.workspaces.take(shop.project, task)

    assert isinstance(found, Unfit)
    assert {it.priority for it in found.findings} == {Priority.P0_CRITICAL}
    assert {it.location.file for it in found.findings if it.location} == {"conf"}
    assert "ANTHROPIC_API_KEY" in found.findings[0].issue
    assert KEY not in repr(found)
    assert asked(shop.judge, "for-each-ref") == ""
    _holds_nothing(shop)


def test_the_line_of_it_is_said(shop) -> None:
    task = _begun(shop)
    shop.agent(task, f"printf 'one\\ntwo\\nkey={KEY}\\n' > conf")

    found = shop.workspaces.take(shop.project, task)

    assert isinstance(found, Unfit)
    assert found.findings[0].location == Location("conf", 3)


@pytest.mark.parametrize(
    "command",
    [f"git commit -qam 'the key is {KEY}'", "echo > $(echo $KEY | tr -d /); git add -A"],
    ids=["message", "name"],
)
def test_a_secret_in_a_message_or_a_name_is_a_finding_too(shop, command) -> None:
    shop.secrets = (Secret("A_KEY", KEY), Secret("B_KEY", KEY.replace("/", "")))
    task = _begun(shop)
    shop.agent(task, f"KEY='{KEY}'; echo 2 >> a.txt; {command}")

    found = shop.workspaces.take(shop.project, task)

    assert isinstance(found, Unfit)
    assert KEY not in repr(found)
    assert KEY.replace("/", "") not in repr(found)


def test_a_secret_that_was_taken_out_again_does_not_come_along(shop) -> None:
    task = _begun(shop)
    shop.agent(
        task,
        f"echo 2 >> a.txt; echo '{KEY}' > conf; git add -A; git commit -qm 'with {KEY}';"
        "git rm -q conf; git commit -qm without",
    )

    change = shop.taken(task)

    assert change.files == ("a.txt",)
    assert "ANTHROPIC_API_KEY" in change.mended
    assert asked(shop.judge, "rev-parse", f"{change.commit}^") == task.pinned.base_commit
    _holds_nothing(shop)


def test_a_value_that_base_has_already_is_no_secret(shop) -> None:
    shop.commit("example", f"key={KEY}\n")
    task = _begun(shop)
    shop.agent(task, f"echo '{KEY}' > conf")

    assert shop.taken(task).files == ("conf",)


def test_another_form_than_the_one_on_base_is_a_secret(shop) -> None:
    shop.commit("example", base64.b64encode(KEY.encode()).decode())
    task = _begun(shop)
    shop.agent(task, f"echo '{KEY}' > conf")

    assert isinstance(shop.workspaces.take(shop.project, task), Unfit)


def test_work_without_a_secret_is_taken_as_ever(shop) -> None:
    task = _begun(shop)
    head = shop.agent(task, "echo 2 >> a.txt; git commit -qam two; git rev-parse HEAD").out.strip()

    change = shop.taken(task)

    assert (change.commit, change.mended) == (head, "")


def test_a_clone_with_a_secret_is_not_removed_so_that_nothing_of_it_is_kept(shop) -> None:
    task = _begun(shop)
    shop.agent(task, f"echo '{KEY}' > conf")

    shop.workspaces.release(shop.project, task)

    assert (shop.workspaces.place(task.id) / "conf").exists()
    _holds_nothing(shop)
