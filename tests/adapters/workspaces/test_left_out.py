"""What stays out of a change: what the set-up made, dependencies, caches."""

from pathlib import Path

import pytest

from lockgate.core.config.settings import EnvSettings, Settings
from lockgate.ports import candidate_of
from tests.adapters.workshop import BARE_AT_LENGTH, BOXED, NEEDS_BOX, Workshop

MANY = "mkdir gen && for i in $(seq 1801); do echo $i > gen/$i.txt; done"
COMMITS = pytest.mark.parametrize(
    "then",
    [
        "true",
        pytest.param("git add -A; git commit -qm all", marks=pytest.mark.slow),
        "git add -Af; git commit -qm all",
    ],
)


@pytest.fixture(params=[BOXED, BARE_AT_LENGTH])
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=request.param)


def _begun(shop: Workshop, id: str = "fix-login-3f9a", **env: object):
    task = shop.task(id, branch=id)
    shop.workspaces.prepare(shop.project, task)
    settings = Settings(formula="none", gates=(), env=EnvSettings(**env))  # type: ignore[arg-type]  # a test's own
    shop.workspaces.set_up(
        candidate_of(shop.project, task), settings, shop.workspaces.place(task.id)
    )
    return task


def _taken(shop: Workshop, task) -> tuple[str, ...]:
    return shop.taken(task).files


@COMMITS
def test_what_the_set_up_made_is_no_part_of_a_change_of_one_file(shop, then) -> None:
    task = _begun(shop, setup=MANY)
    shop.agent(task, f"echo 2 >> a.txt; {then}")

    assert _taken(shop, task) == ("a.txt",)


def test_the_agents_own_git_does_not_show_what_the_set_up_made(shop) -> None:
    task = _begun(shop, setup="mkdir 'we [ird' node_modules; echo 1 > 'we [ird/a*b'; echo > top")

    assert shop.agent(task, "echo n > new; git status --porcelain").out == "?? new\n"


@COMMITS
def test_a_file_of_the_set_up_that_the_agent_changes_is_part_of_its_change(shop, then) -> None:
    task = _begun(shop, setup="echo 1 > made; echo 1 > kept")
    shop.agent(task, f"echo 2 > made; echo n > new; {then}")

    assert _taken(shop, task) == ("made", "new")


def test_a_second_set_up_leaves_out_what_the_first_one_made_as_well(shop) -> None:
    task = _begun(shop, setup="echo 1 > first")
    settings = Settings(formula="none", gates=(), env=EnvSettings(setup="echo 2 > second"))
    shop.agent(task, "echo n > new")

    shop.workspaces.set_up(
        candidate_of(shop.project, task), settings, shop.workspaces.place(task.id)
    )

    assert _taken(shop, task) == ("new",)


def test_lock_files_and_the_set_ups_inputs_are_files_like_others(shop) -> None:
    made = "echo 1 | tee package-lock.json uv.lock deps.txt other.txt"
    task = _begun(shop, setup=made, inputs=("deps.txt",))

    assert _taken(shop, task) == ("deps.txt", "package-lock.json", "uv.lock")


@NEEDS_BOX
def test_a_file_that_base_tracks_by_now_is_as_base_has_it(tmp_path) -> None:
    shop = Workshop.at(tmp_path)
    shop.commit("lock", "1\n")
    _begun(shop, setup="echo made > out", inputs=("lock",))
    shop.commit("out", "tracked\n")
    task = _begun(shop, "later-1", setup="echo made > out", inputs=("lock",))
    shop.agent(task, "echo n > new")

    assert _taken(shop, task) == ("new",)


DEPENDENCIES = (
    ".venv/lib/x.py",
    "node_modules/left-pad/index.js",
    "pkg/node_modules/x",
    "src/__pycache__/a.pyc",
    "foo.dist-info/RECORD",
    "src/foo.egg-info/PKG-INFO",
    ".pytest_cache/README.md",
    ".mypy_cache/x",
    ".ruff_cache/x",
    ".tox/x",
    ".nox/x",
)


@COMMITS
def test_dependencies_and_caches_of_the_agents_own_making_stay_out(shop, then) -> None:
    task = _begun(shop)
    make = "; ".join(f'mkdir -p "$(dirname {it})"; echo x > {it}' for it in DEPENDENCIES)
    marked = "mkdir -p target env; echo t > target/CACHEDIR.TAG; echo o > target/o; echo > env/e"
    shop.agent(task, f"{make}; {marked}; echo > env/pyvenv.cfg; echo n > new; {then}")

    assert _taken(shop, task) == ("new",)


@COMMITS
def test_a_folder_that_base_has_files_in_is_no_dependency(shop, then) -> None:
    shop.commit("lib/[x]/node_modules/a.js")
    shop.commit("target/CACHEDIR.TAG")
    task = _begun(shop)
    make = "cd 'lib/[x]/node_modules'; echo 2 >> a.js; echo 1 > b.js; cd ../../..; echo > target/b"
    shop.agent(task, f"{make}; mkdir node_modules; echo > node_modules/c; {then}")

    mine = ("lib/[x]/node_modules/a.js", "lib/[x]/node_modules/b.js", "target/b")
    assert _taken(shop, task) == mine


@COMMITS
def test_a_new_source_folder_called_target_or_venv_is_part_of_the_change(shop, then) -> None:
    task = _begun(shop)
    shop.agent(task, f"mkdir -p src/target venv; echo > src/target/a.py; echo > venv/b.py; {then}")

    assert _taken(shop, task) == ("src/target/a.py", "venv/b.py")


def test_a_mark_of_a_cache_at_the_top_hides_nothing(shop) -> None:
    task = _begun(shop)
    shop.agent(task, "echo > CACHEDIR.TAG; echo > pyvenv.cfg; echo n > new")

    assert _taken(shop, task) == ("CACHEDIR.TAG", "new", "pyvenv.cfg")
