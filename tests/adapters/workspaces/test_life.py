"""The user's branch, the end of a clone, and what a clone is furnished with."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lockgate.adapters.sandbox import owner
from lockgate.adapters.workspaces.files import remove
from lockgate.core.config.settings import EnvSettings, Settings
from lockgate.core.model.task import Task, TaskId
from lockgate.errors import BadConfig, Unavailable
from lockgate.ports import Change, candidate_of
from tests.adapters.workshop import BARE_AT_LENGTH, BOXED, NEEDS_BOX, Workshop, asked, git


@pytest.fixture(params=[BOXED, BARE_AT_LENGTH])
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=request.param)


@pytest.fixture
def bare(tmp_path: Path) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=False)


def _worked(shop: Workshop, command: str, **fields: object) -> tuple[Task, Change]:
    task = shop.task(**fields)
    shop.workspaces.prepare(shop.project, task)
    shop.agent(task, command)
    return task, shop.taken(task)


def _tip(shop: Workshop, branch: str = "fix-login") -> str:
    return asked(shop.root, "rev-parse", f"refs/heads/{branch}")


# --- the user's branch --------------------------------------------------------------------------


def test_a_branch_that_is_not_there_is_made(shop) -> None:
    task, change = _worked(shop, "echo n > new")

    assert shop.workspaces.publish(shop.project, task, change.commit) is None
    assert shop.workspaces.publish(shop.project, task, change.commit) is None

    assert _tip(shop) == change.commit
    assert asked(shop.root, "show", "fix-login:new") == "n"
    assert not (shop.root / "new").exists()


def test_a_branch_that_we_have_set_moves_with_the_change(bare) -> None:
    task, first = _worked(bare, "echo 1 > new")
    bare.workspaces.publish(bare.project, task, first.commit)
    bare.agent(task, "echo 2 > new")
    second = bare.workspaces.take(bare.project, task)

    why = bare.workspaces.publish(bare.project, task, second.commit)

    assert (why, _tip(bare)) == (None, second.commit)
    assert bare.workspaces.publish(bare.project, task, first.commit) is None


def test_a_branch_that_lies_behind_is_moved_on(bare) -> None:
    git(bare.root, "branch", "fix-login")
    task, change = _worked(bare, "echo n > new")

    assert bare.workspaces.publish(bare.project, task, change.commit) is None
    assert _tip(bare) == change.commit


def test_work_of_the_users_on_that_branch_is_never_overwritten(bare) -> None:
    task, change = _worked(bare, "echo n > new")
    git(bare.root, "checkout", "--quiet", "-b", "fix-login")
    mine = bare.commit("mine.txt", branch="fix-login")
    git(bare.root, "checkout", "--quiet", "main")

    why = bare.workspaces.publish(bare.project, task, change.commit)

    assert why is not None
    assert mine in why
    assert _tip(bare) == mine


def test_what_the_user_added_to_our_branch_is_theirs(bare) -> None:
    task, change = _worked(bare, "echo n > new")
    bare.workspaces.publish(bare.project, task, change.commit)
    git(bare.root, "checkout", "--quiet", "fix-login")
    mine = bare.commit("mine.txt", branch="fix-login")
    git(bare.root, "checkout", "--quiet", "main")
    bare.agent(task, "echo more > new")
    second = bare.workspaces.take(bare.project, task)

    assert "not part of the change" in (
        bare.workspaces.publish(bare.project, task, second.commit) or ""
    )
    assert _tip(bare) == mine


@pytest.mark.parametrize("where", ["main checkout", "linked worktree", "rebase"])
def test_a_branch_that_is_checked_out_is_not_moved(bare, tmp_path, where) -> None:
    task, change = _worked(bare, "echo n > new")
    git(bare.root, "branch", "fix-login")
    match where:
        case "main checkout":
            git(bare.root, "checkout", "--quiet", "fix-login")
        case "linked worktree":
            git(bare.root, "worktree", "add", "--quiet", str(tmp_path / "tree"), "fix-login")
        case _:
            git(bare.root, "checkout", "--quiet", "fix-login")
            bare.commit("x", branch="fix-login")
            command = ("-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-i", "main")
            git(bare.root, *command)
    before = _tip(bare)

    why = bare.workspaces.publish(bare.project, task, change.commit)

    assert why is not None
    assert "fix-login is" in why
    assert _tip(bare) == before


def test_a_branch_that_is_another_name_for_the_base_is_not_set(bare) -> None:
    git(bare.root, "symbolic-ref", "refs/heads/fix-login", "refs/heads/main")
    git(bare.root, "checkout", "--quiet", "-b", "feature")
    task, change = _worked(bare, "echo n > new")
    before = _tip(bare, "main")

    why = bare.workspaces.publish(bare.project, task, change.commit)

    assert why == "fix-login is another name for main"
    assert _tip(bare, "main") == before


def test_a_change_that_cannot_be_copied_is_tried_again(bare) -> None:
    task, _ = _worked(bare, "echo n > new")

    with pytest.raises(Unavailable, match="was not copied"):
        bare.workspaces.publish(bare.project, task, "f" * 40)


def test_a_branch_whose_name_cannot_be_is_told(bare) -> None:
    task, change = _worked(bare, "echo n > new", branch="main/x")

    why = bare.workspaces.publish(bare.project, task, change.commit)

    assert why is not None
    assert "main/x was not set" in why


def test_a_branch_of_the_users_is_adopted_as_the_change(shop) -> None:
    task = shop.task()
    assert shop.workspaces.adopt(shop.project, task) is None
    git(shop.root, "checkout", "--quiet", "-b", "fix-login")
    tip = shop.commit("mine.txt", branch="fix-login")

    change = shop.workspaces.adopt(shop.project, task)

    assert change == Change(tip, ("mine.txt",), change.patch, added=len("x\n"), lines=(1, 0))
    assert asked(shop.judge, "rev-parse", f"refs/lockgate/changes/{task.id}") == tip


def test_a_diff_is_text_and_says_where_it_was_cut(bare, monkeypatch) -> None:
    task, change = _worked(bare, "seq 100 > new; printf 'a\\0b' > binary")
    whole = bare.workspaces.diff(bare.project, task, change.commit)
    monkeypatch.setattr("lockgate.adapters.workspaces.changes.LARGEST_DIFF", 100)

    cut = bare.workspaces.diff(bare.project, task, change.commit)

    assert "+100\n" in whole
    assert "Binary files" in whole
    assert "+100\n" not in cut
    assert "bytes of this diff are left out" in cut
    assert not list(bare.judge.parent.glob(".diff*"))


def test_a_commit_that_nobody_knows_has_no_change(bare) -> None:
    task = bare.task()

    with pytest.raises(Unavailable, match="the diff of dddd"):
        bare.workspaces.change(candidate_of(bare.project, task, "d" * 40))


# --- its end ------------------------------------------------------------------------------------


def test_releasing_keeps_the_work_and_removes_the_rest(shop) -> None:
    task, _ = _worked(shop, "echo n > new; git add new; git commit -qm n; echo m > more")
    home = shop.home / "homes" / task.id
    (home / ".cache").mkdir(parents=True)

    shop.workspaces.release(shop.project, task)
    shop.workspaces.release(shop.project, task)

    assert not home.exists()
    assert not list((shop.home / "workspaces").iterdir())
    kept = asked(shop.judge, "rev-parse", f"refs/lockgate/changes/{task.id}")
    assert shop.files(kept) == ["a.txt", "more", "new"]


def test_a_clone_made_again_begins_where_the_work_was(shop) -> None:
    task, _ = _worked(shop, "echo n > new")
    shop.workspaces.release(shop.project, task)

    place = shop.workspaces.prepare(shop.project, task)

    assert (place / "new").read_text() == "n\n"
    assert shop.agent(task, "git status --porcelain").out == ""
    assert shop.workspaces.take(shop.project, task).files == ("new",)


def test_what_the_user_added_meanwhile_is_where_it_goes_on(bare) -> None:
    task, change = _worked(bare, "echo n > new")
    bare.workspaces.publish(bare.project, task, change.commit)
    git(bare.root, "checkout", "--quiet", "fix-login")
    mine = bare.commit("mine.txt", branch="fix-login")
    bare.workspaces.release(bare.project, task)

    bare.workspaces.prepare(bare.project, task)

    assert bare.agent(task, "git rev-parse HEAD").out.strip() == mine


def test_a_clone_whose_work_cannot_be_kept_stays(bare) -> None:
    task, _ = _worked(bare, "echo n > new")
    bare.agent(task, "echo m > more")
    packs = bare.judge / "objects"
    packs.rename(bare.judge / "hidden")

    with pytest.raises(Unavailable) as error:
        bare.workspaces.release(bare.project, task)

    assert error.value.fix
    assert (bare.workspaces.place(task.id) / "more").exists()


def test_nothing_of_a_task_that_never_began_is_no_trouble(bare) -> None:
    bare.workspaces.release(bare.project, bare.task(pinned=None))


def test_a_hostile_tree_is_removed_and_nothing_that_it_points_to(tmp_path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_text("safe")
    tree = tmp_path / "tree"
    (tree / "shut" / "inner").mkdir(parents=True)
    (tree / "shut" / "inner" / "file").write_text("x")
    (tree / "link").symlink_to(victim)
    os.mkfifo(tree / "pipe")
    deep = os.open(tree, os.O_RDONLY)
    for _ in range(500):
        os.mkdir("d" * 20, dir_fd=deep)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    (tree / "shut" / "inner").chmod(0)
    (tree / "shut").chmod(0)

    remove(tree)
    remove(tree)

    assert not tree.exists()
    assert (victim / "file").read_text() == "safe"
    assert victim.stat().st_mode & 0o777 == 0o755


def test_a_directory_is_removed_though_a_process_still_writes_into_it(tmp_path) -> None:
    place = tmp_path / "place" / "inside"
    place.mkdir(parents=True)
    endless = "i=0; while : > $i; do i=$((i + 1)); done 2>/dev/null"
    with subprocess.Popen(["sh", "-c", endless], cwd=place) as writer:
        while not list(place.iterdir()):
            time.sleep(0.001)
        threading.Timer(0.3, writer.kill).start()

        remove(place.parent)

        assert not place.parent.exists()


def test_a_link_to_a_directory_is_removed_as_a_link(tmp_path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    remove(tmp_path / "link")

    assert [it.name for it in tmp_path.iterdir() if it.name in {"real", "link"}] == ["real"]


def test_idle_clones_go_oldest_first_until_the_rest_fits(bare) -> None:
    big = "head -c 300000 /dev/urandom > big"
    tasks = [_worked(bare, big, id=f"t-{n}", branch=f"b{n}", updated=n)[0] for n in (3, 1, 2)]
    idle = [(bare.project, task) for task in tasks]
    assert bare.workspaces.keep_within(10**9, idle) == ()

    whole = bare.workspaces.sizes()["workspaces"]
    first = bare.workspaces.keep_within(whole - 1, idle)
    rest = bare.workspaces.keep_within(0, idle)

    assert (first, rest) == ((TaskId("t-1"),), (TaskId("t-2"), TaskId("t-3")))
    assert bare.workspaces.sizes()["workspaces"] == 0
    assert bare.workspaces.sizes()["repositories"] > 900_000


def test_a_clone_that_cannot_be_released_does_not_hold_up_the_others(bare) -> None:
    sick, _ = _worked(bare, "echo 1 > new", id="sick", branch="s", updated=1)
    well, _ = _worked(bare, "echo 2 > new", id="well", branch="w", updated=2)
    bare.agent(
        sick,
        "b=$(git hash-object -w a.txt); i=$(printf '100644 blob %s\\tx\\n' $b | git mktree);"
        "t=$(printf '040000 tree %s\\t.git\\n' $i | git mktree);"
        "git update-ref HEAD $(git commit-tree -m x $t -p HEAD)",
    )

    gone = bare.workspaces.keep_within(0, [(bare.project, sick), (bare.project, well)])

    assert gone == (well.id,)
    assert bare.workspaces.place(sick.id).exists()


# --- killed at any moment -----------------------------------------------------------------------

KILLED = """
import os, sys
from pathlib import Path
from tests.adapters.workshop import Workshop
shop = Workshop(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "True")
Path(sys.argv[4], "pid").write_text(str(os.getpid()))
task = shop.task()
shop.workspaces.prepare(shop.project, task)
(shop.workspaces.place(task.id) / "new").write_text("n")
shop.workspaces.take(shop.project, task)
shop.workspaces.publish(shop.project, task, shop.workspaces.take(shop.project, task).commit)
shop.workspaces.release(shop.project, task)
"""
SHIM = """#!/bin/sh
echo >> {place}/calls
[ $(wc -l < {place}/calls) -ge {number} ] && mv {place}/pid {place}/gone 2>/dev/null &&
    kill -9 $(cat {place}/gone)
exec {git} "$@"
"""


@pytest.mark.parametrize("number", range(4, 42, 13))
def test_killed_at_any_call_of_git_it_goes_on_the_next_time(shop, tmp_path, number) -> None:
    assert _run_until_killed(shop, tmp_path / "shim", number) == -signal.SIGKILL
    task = shop.task()

    place = shop.workspaces.prepare(shop.project, task)
    (place / "new").write_text("n")
    change = shop.workspaces.take(shop.project, task)
    why = shop.workspaces.publish(shop.project, task, change.commit)
    shop.workspaces.release(shop.project, task)

    assert (change.files, why) == (("new",), None)
    assert not list((shop.home / "workspaces").iterdir())
    assert sorted(it.name for it in shop.judge.parent.iterdir()) == ["base.git", "judge.git"]
    assert asked(shop.judge, "fsck", "--connectivity-only", "--no-dangling") == ""


def _run_until_killed(shop: Workshop, place: Path, number: int) -> int:
    """Its git goes on for a moment, as it would."""
    place.mkdir()
    shim = place / "git"
    shim.write_text(SHIM.format(place=place, number=number, git=shutil.which("git")))
    shim.chmod(0o755)
    root = Path(__file__).parents[3]
    argv = (str(shop.root), str(shop.home), str(shop.sandboxed), str(place))
    env = dict(os.environ) | {
        "PYTHONPATH": os.pathsep.join((str(root), *sys.path)),
        "PATH": f"{place}{os.pathsep}{os.environ['PATH']}",
    }
    program = (sys.executable, "-c", KILLED)
    return subprocess.run((*program, *argv), check=False, env=env, cwd=root).returncode


def test_many_at_once_do_not_disturb_each_other(bare) -> None:
    tasks = [bare.task(f"t-{n}", branch=f"b{n}") for n in range(6)]

    def work(task):
        place = bare.workspaces.prepare(bare.project, task)
        (place / task.id).write_text("x")
        change = bare.workspaces.take(bare.project, task)
        why = bare.workspaces.publish(bare.project, task, change.commit)
        bare.workspaces.release(bare.project, task)
        return change.files, why

    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(work, tasks))

    assert done == [((task.id,), None) for task in tasks]
    assert not list((bare.home / "locks").iterdir())


# --- what a clone is furnished with -------------------------------------------------------------


def _settings(**fields: object) -> Settings:
    env = EnvSettings(**fields)  # type: ignore[arg-type]  # a test's own
    return Settings(formula="none", gates=(), env=env)


SETUP = (
    "mkdir -p .venv/bin src && pwd > .venv/where && cat lock > .venv/lock && ln -s where .venv/l"
)
SETUP += " && echo made > src/made && echo changed > a.txt && date +%N > .venv/stamp"


def test_the_set_up_runs_once_for_its_inputs_and_every_clone_gets_what_it_made(shop) -> None:
    shop.commit("src/code", "1\n")
    shop.commit("lock", "v1\n")
    shop.commit(".gitignore", ".venv\nmade\n")
    settings = _settings(setup=SETUP, inputs=("lock",))
    tasks = [shop.task("t-1", branch="b1"), shop.task("t-2", branch="b2")]
    for task in tasks:
        shop.workspaces.prepare(shop.project, task)
        shop.workspaces.set_up(
            candidate_of(shop.project, task), settings, shop.workspaces.place(task.id)
        )
        shop.workspaces.set_up(
            candidate_of(shop.project, task), settings, shop.workspaces.place(task.id)
        )

    places = [shop.workspaces.place(task.id) for task in tasks]
    where = [(it / ".venv" / "where").read_text().strip() for it in places]
    stamps = {(it / ".venv" / "stamp").read_text() for it in places}

    assert [(it / ".venv" / "lock").read_text() for it in places] == ["v1\n", "v1\n"]
    assert [(it / "src" / "made").read_text() for it in places] == ["made\n", "made\n"]
    if shop.sandboxed:
        assert (where, len(stamps)) == (["/workspace"] * 2, 1)
        assert (places[0] / "a.txt").read_text() == "one\n"
        assert shop.workspaces.take(shop.project, tasks[0]).files == ()
        assert {it.lstat().st_uid for it in places[0].rglob("*")} == {owner()[0]}
    else:
        assert where == [str(it) for it in places]
    assert shop.agent(tasks[0], "rm .venv/lock && echo mine > .venv/lock").code == 0
    assert (places[1] / ".venv" / "lock").read_text() == "v1\n"


def _layer(shop: Workshop, settings: Settings) -> Path:
    """The newest there is once a new task was set up."""
    task = shop.task(f"t-{asked(shop.root, 'rev-parse', 'main')[:9]}")
    shop.workspaces.prepare(shop.project, task)
    shop.workspaces.set_up(
        candidate_of(shop.project, task), settings, shop.workspaces.place(task.id)
    )
    beside = (shop.home / "layers" / shop.project.id).iterdir()
    layers = [it for it in beside if it.is_dir()]
    return max(layers, key=lambda it: it.stat().st_ctime_ns)


@NEEDS_BOX
def test_other_inputs_make_another_layer(tmp_path) -> None:
    shop = Workshop.at(tmp_path)
    settings = _settings(setup="cat lock > out", inputs=("lock",))
    seen: dict[Path, list[str]] = {}
    for version in ("1", "2"):
        shop.commit("lock", version)
        shop.commit(f"unrelated-{version}", version)
        layer = _layer(shop, settings)
        seen[layer] = [it.name + it.read_text() for it in layer.iterdir()]
        shop.commit(f"unrelated-{version}", "again")
        assert _layer(shop, settings) == layer

    assert list(seen.values()) == [["out1"], ["out2"]]
    assert set((shop.home / "layers" / shop.project.id).glob("[!.]*")) == set(seen)


def test_a_set_up_that_fails_says_how_it_ended(shop) -> None:
    task = shop.task()
    shop.workspaces.prepare(shop.project, task)

    with pytest.raises(Unavailable, match=r"exited 3.*no such package") as error:
        shop.workspaces.set_up(
            candidate_of(shop.project, task),
            _settings(setup="echo no such package >&2; exit 3"),
            shop.workspaces.place(task.id),
        )

    assert "[env] setup" in error.value.fix
    layers = shop.home / "layers" / shop.project.id
    assert not layers.exists() or not list(layers.iterdir())


@NEEDS_BOX
def test_a_set_up_cannot_reach_the_state_or_plant_links_that_hurt(tmp_path) -> None:
    shop = Workshop.at(tmp_path)
    shop.commit("src/victim", "1\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("safe")
    task = shop.task()
    shop.workspaces.prepare(shop.project, task)
    setup = f"ls {shop.home} && exit 9; rm -r src; ln -s {outside} src; echo x > out"

    with pytest.raises(Unavailable, match="cannot overwrite directory"):
        shop.workspaces.set_up(
            candidate_of(shop.project, task), _settings(setup=setup), shop.workspaces.place(task.id)
        )

    assert (outside / "victim").read_text() == "safe"


def test_ignored_files_are_copied_and_never_part_of_a_change(shop) -> None:
    (shop.root / ".env").write_text("SECRET=1\n")
    (shop.root / "conf").mkdir()
    (shop.root / "conf" / "local.ini").write_text("x\n")
    (shop.root / "a.txt").write_text("the user's own edit\n")
    task = shop.task()
    place = shop.workspaces.prepare(shop.project, task)

    settings = _settings(copy=(".env", "conf", "a.txt", "not-there"))
    shop.workspaces.set_up(
        candidate_of(shop.project, task), settings, shop.workspaces.place(task.id)
    )
    clean = shop.agent(task, "cat .env conf/local.ini a.txt; git status --porcelain")
    shop.agent(task, "echo n > new; git add -f .env conf; git add -A; git commit -qm all")
    change = shop.workspaces.take(shop.project, task)

    assert clean.out == "SECRET=1\nx\none\n", clean.err
    assert change.files == ("new",)
    assert (place / ".env").exists()


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "", ".git/config", "a/../../b"])
def test_a_file_from_elsewhere_is_not_copied(bare, name) -> None:
    task = bare.task()
    bare.workspaces.prepare(bare.project, task)

    with pytest.raises(BadConfig, match="not a file in the project"):
        bare.workspaces.set_up(
            candidate_of(bare.project, task),
            _settings(copy=(name,)),
            bare.workspaces.place(task.id),
        )


def test_a_checkout_is_furnished_in_the_same_way(shop) -> None:
    (shop.root / ".env").write_text("SECRET=1\n")
    task = shop.task()
    desk = shop.home / "runs" / task.id / "1"
    shop.workspaces.checkout(candidate_of(shop.project, task, task.pinned.base_commit), desk)

    settings = _settings(setup="echo 1 > made", copy=(".env",))
    shop.workspaces.set_up(candidate_of(shop.project, task), settings, desk)

    seen = shop.inside(desk, "cat made .env")
    assert seen.out == "1\nSECRET=1\n", seen.err
    assert not shop.sandboxed or shop.inside(desk, "git status --porcelain").out == ""


@NEEDS_BOX
def test_links_planted_before_a_second_set_up_lead_nowhere(tmp_path) -> None:
    shop = Workshop.at(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / ".env").write_text("safe")
    task = shop.task()
    place = shop.workspaces.prepare(shop.project, task)
    (shop.root / "conf").mkdir()
    (shop.root / "conf" / ".env").write_text("secret")
    (place / "conf").symlink_to(outside)
    (place / ".git" / "info" / "exclude").unlink()
    (place / ".git" / "info" / "exclude").symlink_to(outside / ".env")

    with pytest.raises(Unavailable):
        shop.workspaces.set_up(
            candidate_of(shop.project, task),
            _settings(copy=("conf/.env",)),
            shop.workspaces.place(task.id),
        )

    assert (outside / ".env").read_text() == "safe"


@NEEDS_BOX
def test_two_set_ups_at_once_run_it_once(tmp_path) -> None:
    shop = Workshop.at(tmp_path)
    tasks = [shop.task("t-1", branch="b1"), shop.task("t-2", branch="b2")]
    ready = threading.Barrier(2)
    settings = _settings(setup="date +%s%N > stamp; sleep 0.3")

    def work(task):
        place = shop.workspaces.prepare(shop.project, task)
        ready.wait()
        shop.workspaces.set_up(
            candidate_of(shop.project, task), settings, shop.workspaces.place(task.id)
        )
        return (place / "stamp").read_text()

    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(work, tasks))) == 1
