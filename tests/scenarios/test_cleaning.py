"""A home is cleaned by age: nothing that is used goes, and nothing that cannot be had again."""

import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.user_files import kept_for
from lockgate.bootstrap.upkeep import cleaner_of, inspection_of, versions_of
from lockgate.core.model.task import Status, TaskId
from lockgate.core.retention import DAY, Keep, Kind
from lockgate.errors import BadConfig
from lockgate.services.setup.cleaning import Cleaner
from lockgate.services.task.callers import HUMAN
from tests.scenarios.world import World, git
from tests.store.samples import a_session, moved

REFS = "refs/lockgate"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.at(tmp_path)


def said(place: Path, *argv: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    asked = ("git", "-C", str(place), *who, *argv)
    done = subprocess.run(asked, check=False, capture_output=True, text=True)
    return done.stdout.strip()


def later(world: World, days: float = 1000.0) -> Cleaner:
    """As it is so many days from now."""
    it = cleaner_of(world.app)
    now = it.clock.now() + days * DAY

    class Then:
        def now(self) -> float:
            return now

        def elapsed(self) -> float:
            return 0.0

    return replace(it, clock=Then())


def landed(world: World, branch: str = "fix-login") -> TaskId:
    """A task whose branch the user's repository has, as if its change had landed."""
    id = world.started(branch)
    git(world.root, "switch", "--quiet", "--create", branch)
    (world.root / f"{branch}.txt").write_text("new\n")
    git(world.root, "add", "--all")
    git(world.root, "commit", "--quiet", "--message", branch)
    first = said(world.root, "rev-parse", branch)
    project, task = world.project(), world.task(id)
    spaces = world.app.workspaces
    assert spaces.adopt(project, task) is not None
    git(world.root, "commit", "--quiet", "--amend", "--message", "better")
    change = spaces.adopt(project, task)
    git(world.root, "switch", "--quiet", "main")
    assert change is not None
    git(world.root, "branch", "--force", branch, first)
    judge = spaces.base(project).with_name("judge.git")
    said(judge, "update-ref", f"{REFS}/published/{id}/{first}", first)
    assert spaces.publish(project, task, change.commit) is None
    git(world.root, "merge", "--quiet", "--no-ff", "--no-edit", branch)
    tip = said(world.root, "rev-parse", "main")
    over(world, id, status=Status.DONE, candidate=change.commit, landed=tip)
    return id


def over(world: World, id: TaskId, **fields: object) -> None:
    """The task is so, and nothing is left to do for it."""
    world.app.store.commit(moved(world.task(id), **fields))
    world.app.coordinator.effector.carry_out(id)
    pending = world.app.store.pending_effects(id, 100)
    world.app.store.effects_done([it.key for it in pending])


def names(world: World, kind: str, id: TaskId) -> list[str]:
    judge = world.app.workspaces.base(world.project()).with_name("judge.git")
    return said(judge, "for-each-ref", "--format=%(refname)", f"{REFS}/{kind}/{id}").splitlines()


def test_of_a_landed_task_its_change_its_events_and_its_text_stay(world: World) -> None:
    id = landed(world)
    events = world.app.views.all_events(id)
    shown = world.app.views.task(id)
    directory = world.home / "tasks" / id
    world.app.views.files.add_checkpoint(id, {"work_summary": "half"})
    session = world.home / "sessions" / f"{id}.1"
    session.mkdir(parents=True)
    (session / "exit.json").write_text('{"ending": "exited", "code": 0}')
    change = world.task(id).candidate

    gone = later(world).clean(100)

    assert {it.kind for it in gone} == {Kind.SESSION, Kind.TASK, Kind.BRANCH, Kind.SNAPSHOT}
    assert {it.task for it in gone} == {id}
    assert not directory.exists()
    assert not session.exists()
    assert said(world.root, "branch", "--list", "fix-login") == ""
    assert names(world, "changes", id) == [f"{REFS}/changes/{id}"]
    assert names(world, "snapshots", id) == names(world, "published", id) == []
    assert world.app.views.all_events(id) == events
    assert world.app.views.first_broken_event() is None
    assert world.app.views.task(id).body == shown.body == "## Context\n"
    assert world.app.views.task(id).trouble is None
    assert "new" in world.app.workspaces.diff(world.project(), world.task(id), change)
    assert later(world).clean(100) == ()


def test_repositories_are_packed_and_what_a_live_task_needs_stays(world: World) -> None:
    id = landed(world)
    live = world.started("live")
    judge = world.app.workspaces.base(world.project()).with_name("judge.git")
    change = world.task(id).candidate
    lone = said(judge, "commit-tree", f"{change}^{{tree}}", "-m", "no ref has it")
    lost = said(judge, "commit-tree", f"{change}^{{tree}}", "-m", "nobody needs it")
    world.app.store.commit(moved(world.task(live), candidate=lone))
    (world.home / "settings.toml").write_text("[keep]\nunreachable = 0\nsnapshots = 0\n")
    cleaner = later(world)
    while cleaner.clean(1):
        pass

    [project] = cleaner.to_pack(0, 0)
    assert cleaner.pack(project) > 0

    assert [it.loose for it in cleaner.refs.packing(project)] == [0, 0]
    assert said(judge, "cat-file", "-t", lone) == "commit"
    assert said(judge, "cat-file", "-t", change) == "commit"
    assert said(judge, "cat-file", "-t", lost) == ""
    assert list(cleaner.to_pack(0, 9)) == []
    assert world.app.workspaces.diff(project, world.task(id), change)


def test_a_branch_that_somebody_moved_or_stands_on_stays(world: World) -> None:
    moved_on, stood_on = landed(world, "moved-on"), landed(world, "stood-on")
    git(world.root, "branch", "--force", "moved-on", "main")
    git(world.root, "switch", "--quiet", "stood-on")

    gone = later(world).clean(100)

    assert Kind.BRANCH not in {it.kind for it in gone}
    assert said(world.root, "branch", "--list", "--format=%(refname:short)") == (
        "main\nmoved-on\nstood-on"
    )
    assert names(world, "published", moved_on) == []
    assert names(world, "published", stood_on) != []


def test_nothing_goes_while_a_task_lives_or_a_session_runs(world: World) -> None:
    live = world.started("live")
    done = landed(world)
    world.app.store.commit(
        replace(moved(world.task(done)), session=a_session(world.task(done), f"{done}.1"))
    )
    for id in (live, done):
        for room in ("homes", "reviews", "runs", "workspaces"):
            (world.home / room / id).mkdir(parents=True)
        (world.home / "sessions" / f"{id}.1").mkdir(parents=True)

    assert later(world).plan() == later(world).clean(100) == ()


def test_a_text_that_the_database_has_not_stays(world: World) -> None:
    id = landed(world)
    world.write(id, "written by hand afterwards")

    later(world).clean(100)

    assert "by hand" in world.path(id).read_text()
    assert not (world.home / "tasks" / id / "history.jsonl").exists()


def test_what_belongs_to_nobody_goes_by_its_own_age(world: World) -> None:
    for name in ("logs/bug-1.log", "logs/orchestrator.log", "backups/old.db", "backups/new.db"):
        (world.home / name).parent.mkdir(exist_ok=True)
        (world.home / name).write_text("x")
    (world.home / "deleted" / "old-1").mkdir(parents=True)
    (world.home / "sessions" / "trial-1f").mkdir(parents=True)
    (world.home / "runs" / "of-nobody").mkdir(parents=True)
    half = world.home / "workspaces" / ".old-gone-0123abcd"
    half.mkdir(parents=True)
    (world.home / "workspaces" / "unknown-1").mkdir()
    (world.home / "backups" / "new.db").touch()

    assert later(world, 0).plan() == ()
    gone = {it.name for it in later(world).clean(100)}

    assert gone == {
        "logs/bug-1.log",
        "backups/old.db",
        "deleted/old-1",
        "sessions/trial-1f",
        "runs/of-nobody",
        "workspaces/.old-gone-0123abcd",
    }
    assert (world.home / "workspaces" / "unknown-1").is_dir()


def test_a_step_cleans_a_part_and_says_how_much(world: World) -> None:
    for number in range(3):
        (world.home / "deleted" / f"old-{number}").mkdir(parents=True)
        (world.home / "deleted" / f"old-{number}" / "file").write_bytes(b"x" * 5_000)
    it = later(world)

    assert len(it.clean(2)) == 2
    count, size = it.step()

    assert count == 1
    assert size > 0
    assert it.step() == (0, 0)


def test_where_space_goes_is_told_by_project_and_kind(world: World) -> None:
    id = world.started()
    (world.home / "sessions" / f"{id}.1").mkdir(parents=True)
    (world.home / "sessions" / f"{id}.1" / "stdout.log").write_bytes(b"x" * 50_000)

    rows = {(it.project, it.kind): it.size for it in cleaner_of(world.app).usage()}

    name = world.project().name
    assert rows[name, "sessions"] >= 50_000
    assert rows["", "database"] > 10_000
    assert (name, "tasks") in rows


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("", Keep()), ("[keep]\nsessions = 2\nlogs = 0.5\n", Keep(sessions=2.0, logs=0.5))],
)
def test_how_long_things_are_kept_is_said_in_the_home(tmp_path, text, wanted) -> None:
    (tmp_path / "settings.toml").write_text(text)

    assert kept_for(tmp_path) == wanted


@pytest.mark.parametrize(
    "text", ["[keep]\nsession = 2\n", "[keep]\nlogs = -1\n", "[keep]\nlogs = true\n", "keep = 2\n"]
)
def test_what_cannot_be_a_number_of_days_is_told(tmp_path, text) -> None:
    (tmp_path / "settings.toml").write_text(text)

    with pytest.raises(BadConfig, match=r"settings\.toml was not read"):
        kept_for(tmp_path)


# --- a deep look --------------------------------------------------------------------------------


def looked(world: World, *, repair: bool = False) -> dict[str, str]:
    parts = inspection_of(world.app, repair=repair).parts()
    return {it.name: it.costs or it.found for it in parts if it.found != "nothing wrong"}


def test_a_sound_home_has_nothing_wrong(world: World) -> None:
    landed(world)
    world.create("another")

    assert looked(world) == {}


def test_what_does_not_fit_together_is_told_and_what_is_safe_is_repaired(world: World) -> None:
    id = world.create()
    world.path(id).unlink()
    for name in ("tasks/ghost", "workspaces/ghost", "homes/ghost", "sessions/ghost.1", "repos/q"):
        (world.home / name).mkdir(parents=True)
    layer = world.home / "layers" / world.project().id / "abc"
    layer.mkdir(parents=True)
    subprocess.run(("touch", "-d", "2 days ago", str(layer)), check=True)

    told = looked(world)

    assert told["TASK.md of live tasks"] == id
    assert told["directories of nothing known"].endswith("and 2 more")
    assert told["set-up layers"].endswith("abc")
    assert "written again" in looked(world, repair=True)["TASK.md of live tasks"]
    assert looked(world) == {}
    assert world.path(id).exists()
    aside = sorted(it.name.rpartition("-")[0] for it in (world.home / "deleted").iterdir())
    assert aside == ["repos-q", "tasks-ghost", "workspaces-ghost"]


def test_branches_of_tasks_that_are_gone_are_told_and_removed_where_nothing_is_lost(
    world: World,
) -> None:
    """One that somebody moved on is theirs; one whose commit nothing else names stays."""
    ids = [landed(world, it) for it in ("safe", "only", "moved")]
    git(world.root, "branch", "same-place", "safe")
    git(world.root, "branch", "--force", "moved", "main")
    judge = world.app.workspaces.base(world.project()).with_name("judge.git")
    for kind in ("changes", "snapshots"):
        for name in names(world, kind, ids[1]):
            said(judge, "update-ref", "-d", name)
    assert looked(world) == {}
    for id in ids:
        world.app.tasks.delete(id, HUMAN)
        shutil.rmtree(world.home / "tasks" / id, ignore_errors=True)

    told = looked(world)["branches of tasks that are gone"]
    repaired = looked(world, repair=True)["branches of tasks that are gone"]

    only = f"only of {ids[1]} (its commit is named by nothing else)"
    assert f"safe of {ids[0]}" in told
    assert only in told
    assert repaired == f"{world.project().name}: {only}"
    assert said(world.root, "branch", "--list", "--format=%(refname:short)").split() == [
        "main",
        "moved",
        "only",
        "same-place",
    ]
    assert names(world, "changes", ids[0]) != []


def test_commits_and_objects_that_are_gone_are_told(world: World) -> None:
    id = landed(world)
    live = world.started("live")
    world.app.store.commit(moved(world.task(live), candidate="a" * 40))
    over(world, id, landed="b" * 40)
    judge = world.app.workspaces.base(world.project()).with_name("judge.git")
    said(judge, "update-ref", "refs/lockgate/changes/x", world.task(id).candidate)
    for it in (
        *(judge / "objects").glob("[0-9a-f][0-9a-f]/*"),
        *(judge / "objects/pack").iterdir(),
    ):
        it.unlink()

    told = looked(world)

    assert "a" * 40 in told["commits of tasks"]
    assert "b" * 40 in told["commits of tasks"]
    assert "judge.git" in told["repositories of Lockgate"]


def test_a_session_that_the_database_takes_for_running_is_told(world: World) -> None:
    id = world.started()
    task = world.task(id)
    world.app.store.commit(replace(moved(task), session=a_session(task, f"{id}.1")))

    assert looked(world) == {"sessions at work": f"{id}.1"}


def test_the_versions_of_a_home_are_compared(world: World) -> None:
    it = versions_of(world.app)

    assert (it.orchestrator, it.runners) == (None, {})
    assert it.schema == it.known


def test_tasks_and_files_are_as_old_as_by_the_clock_that_hosts_share(world: World) -> None:
    landed(world)
    log = world.home / "logs" / "bug.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("new by the clock of its own machine\n")
    now = world.app.witness.clock.now() + 31 * DAY

    class Shared:
        def now(self) -> float:
            return now

        def elapsed(self) -> float:
            return 0.0

    it = replace(world.app, witness=replace(world.app.witness, clock=Shared()))

    assert [found.kind for found in cleaner_of(it).clean(100)] == [Kind.BRANCH]
    assert log.exists()
