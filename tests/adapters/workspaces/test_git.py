"""Whose name an agent's work carries, committed by the agent or not."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.user_files import signs_off
from lockgate.adapters.workspaces import GitWorkspaces
from lockgate.core.model.commits import Author
from lockgate.core.model.task import Task
from lockgate.errors import BadConfig
from lockgate.ports import Change
from tests.adapters.workshop import BARE, BOXED, Workshop, asked, git

COAUTHOR = "Co-authored-by: scripted <scripted@localhost>"
SIGNED = "Signed-off-by: The User <user@localhost>"
PEOPLE = "%an <%ae>|%cn <%ce>"
USER = "The User <user@localhost>"
AGENT = "scripted <scripted@localhost>"


@pytest.fixture(params=[BOXED, BARE])
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=request.param)


def begun(shop: Workshop, author: Author = Author.USER, *, signoff: bool = False) -> Task:
    task = shop.task(goal="Fix the login redirect")
    assert task.pinned is not None
    task = replace(task, pinned=replace(task.pinned, author=author))
    spaces = GitWorkspaces(shop.home, sandboxed=shop.sandboxed, signoff=lambda: signoff)
    spaces.prepare(shop.project, task)
    return task


def said(shop: Workshop, commit: str, form: str) -> str:
    return asked(shop.judge, "log", "-1", f"--format={form}", commit)


def test_work_that_the_agent_did_not_commit_has_the_goal_as_its_subject(shop) -> None:
    task = begun(shop)
    shop.agent(task, "echo n > new")

    commit = shop.taken(task).commit

    assert said(shop, commit, PEOPLE) == f"{USER}|{USER}"
    assert said(shop, commit, "%B").strip() == f"Fix the login redirect\n\n{COAUTHOR}"


def test_the_agents_own_commits_name_it_as_coauthor(shop) -> None:
    task = begun(shop)
    shop.agent(task, "echo n > new; git add new; git commit -qm 'Add a file'")

    commit = shop.taken(task).commit

    assert said(shop, commit, PEOPLE) == f"{USER}|{USER}"
    assert said(shop, commit, "%B").strip() == f"Add a file\n\n{COAUTHOR}"


def test_a_coauthor_that_the_agent_names_itself_is_named_once(shop) -> None:
    task = begun(shop)
    own = "Co-Authored-By: Scripted 4 <scripted@localhost>"
    shop.agent(task, f"echo n > new; git add new; git commit -qm 'Add a file' -m '{own}'")

    assert said(shop, shop.taken(task).commit, "%B").strip() == f"Add a file\n\n{own}"


@pytest.mark.parametrize("commits", ["true", "git add new; git commit -qm 'Add a file'"])
def test_an_agent_can_be_the_author_and_the_user_commits(shop, commits) -> None:
    task = begun(shop, Author.AGENT)
    shop.agent(task, f"echo n > new; {commits}")

    commit = shop.taken(task).commit

    assert said(shop, commit, PEOPLE) == f"{AGENT}|{USER}"
    assert "Co-authored-by" not in said(shop, commit, "%B")


@pytest.mark.parametrize("commits", ["true", "git add new; git commit -qm 'Add a file'"])
def test_a_sign_off_is_on_every_commit_where_the_user_asked_for_it(shop, commits) -> None:
    task = begun(shop, signoff=True)
    shop.agent(task, f"echo n > new; {commits}")
    spaces = GitWorkspaces(shop.home, sandboxed=shop.sandboxed, signoff=lambda: True)

    taken = spaces.take(shop.project, task)

    assert isinstance(taken, Change)
    commit = taken.commit
    assert said(shop, commit, "%B").strip().endswith(f"{COAUTHOR}\n{SIGNED}")


def test_a_hook_of_ours_does_not_keep_an_agent_from_committing(shop) -> None:
    task = begun(shop)
    done = shop.agent(task, "echo n > new; git add new; git commit -q --allow-empty-message -m ''")

    assert done.code == 0, done.err


def test_a_change_of_the_users_identity_is_seen(tmp_path) -> None:
    shop = Workshop.at(tmp_path, sandboxed=False)
    git(shop.root, "config", "user.name", 'Ann "the" Émile')
    task = begun(shop)
    shop.agent(task, "echo n > new; git add new; git commit -qm 'Add a file'")

    assert said(shop, shop.taken(task).commit, "%an") == 'Ann "the" Émile'


# --- the user's own settings --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [(None, False), ("", False), ("[commit]\n", False), ("[commit]\nsignoff = true\n", True)],
)
def test_the_sign_off_is_asked_for_in_the_home_alone(tmp_path, text, wanted) -> None:
    if text is not None:
        (tmp_path / "settings.toml").write_text(text)

    assert signs_off(tmp_path) is wanted


@pytest.mark.parametrize(
    "text", ["[commit]\nsignoff = 1\n", "[commit]\nsign = true\n", "x = 1\n", "[", "commit = 1\n"]
)
def test_a_setting_that_nobody_knows_is_told(tmp_path, text) -> None:
    (tmp_path / "settings.toml").write_text(text)

    with pytest.raises(BadConfig, match=r"settings\.toml was not read"):
        signs_off(tmp_path)
