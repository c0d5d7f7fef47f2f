"""A project that is given a hub: read from this host's mirror, landed there, cleaned up there."""

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.hub import GitExchange, GitTrial
from lockgate.bootstrap import open_app
from lockgate.bootstrap.upkeep import cleaner_of
from lockgate.core.config.settings import MergeFence
from lockgate.core.model.people import Right
from lockgate.core.model.task import Status
from lockgate.core.retention import DAY, Kind
from lockgate.errors import Refused, Unavailable
from lockgate.ports import Change, candidate_of
from lockgate.services.orchestrator.effects import Housekeeper
from lockgate.services.setup.hubs import Hubs
from lockgate.services.task.callers import HUMAN
from tests.scenarios.world import REVIEW_ONLY, World, git
from tests.store.samples import moved

COPIES = f'{REVIEW_ONLY}[env]\ncopy = ["secret.env"]\n'


@pytest.fixture
def world(tmp_path: Path) -> World:
    it = World.at(tmp_path, COPIES)
    git(tmp_path, "clone", "--quiet", "--bare", str(it.root), str(tmp_path / "hub.git"))
    return it


def hub_of(world: World) -> Path:
    return world.home.with_name("hub.git")


def hubs(world: World) -> Hubs:
    return Hubs(world.app.store, GitExchange(world.home), GitTrial())


def refs(world: World) -> list[str]:
    asked = ("git", "-C", str(hub_of(world)), "for-each-ref", "--format=%(refname)")
    said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    return [it for it in said.splitlines() if it.startswith("refs/lockgate")]


def test_a_project_with_a_hub_lives_by_it(world) -> None:
    hubs(world).give(world.project(), str(hub_of(world)), HUMAN)
    task = world.task(world.started())
    project, spaces = world.project(), world.app.workspaces
    assert project == world.app.store.project(project.id) == world.app.store.projects()[0]
    assert Path(project.common_dir).name == "mirror.git"
    place = spaces.prepare(project, task)
    settings = world.app.configuration.settings_of(project)
    with pytest.raises(Unavailable, match=r"this host has no .*secret\.env"):
        spaces.set_up(candidate_of(project, task), settings, place)
    Path(project.files).mkdir(parents=True)
    (Path(project.files) / "secret.env").write_text("a=b\n")
    spaces.set_up(candidate_of(project, task), settings, place)
    assert (place / "secret.env").read_text() == "a=b\n"
    (place / "new.txt").write_text("x\n")
    taken = spaces.take(project, task)
    assert isinstance(taken, Change)
    assert taken.files == ("new.txt",)
    assert len(refs(world)) == 2


def test_any_clone_of_a_hub_is_its_project(world, tmp_path) -> None:
    made = world.project()
    hubs(world).give(made, str(hub_of(world)), HUMAN)
    for origin, name in ((hub_of(world), "clone"), (world.root, "other")):
        git(tmp_path, "clone", "--quiet", str(origin), str(tmp_path / name))
    here = world.app.projects.here

    shared = here(world.root)
    world.started()

    assert (shared.id, shared.url) == (made.id, str(hub_of(world)))
    assert here(tmp_path / "clone") == shared
    assert here(Path(shared.common_dir)) == shared
    assert here(tmp_path / "other").url == ""
    assert world.app.projects.clone_at(world.root) == made


def test_a_project_with_a_hub_lands_there(world) -> None:
    hubs(world).give(world.project(), str(hub_of(world)), HUMAN)
    project = world.project()

    target, _ = world.app.train.target(project)
    waits = replace(world.app, hub_fence=MergeFence.WAIT).train.target(project)[0]

    assert (target.remote, target.fence) == ("origin", MergeFence.REF)
    assert (waits.remote, waits.fence) == ("origin", MergeFence.WAIT)
    assert world.app.train.train(target).tip.commit == at_hub(world)
    assert hubs(world).follow() == {}
    [[name, found]] = hubs(world).checked().items()
    assert name == project.name
    assert all(it.ok for it in found)


def at_hub(world: World) -> str:
    asked = ("git", "-C", str(hub_of(world)), "rev-parse", "main")
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def test_the_refs_of_a_task_go_from_the_hub_seven_days_after_its_end(world) -> None:
    hubs(world).give(world.project(), str(hub_of(world)), HUMAN)
    id = world.started()
    project, spaces = world.project(), world.app.workspaces
    (spaces.prepare(project, world.task(id)) / "new.txt").write_text("x\n")
    spaces.take(project, world.task(id))
    ended = world.move(id, Status.CANCELLED, reason="no need of it")
    world.app.store.effects_done([it.key for it in world.app.store.pending_effects(id, 100)])

    assert Kind.HUB not in cleaned(world, ended.updated + 6.9 * DAY)
    assert len(refs(world)) == 2
    assert Kind.HUB in cleaned(world, ended.updated + 7.1 * DAY)
    assert refs(world) == []
    assert Kind.HUB not in cleaned(world, ended.updated + 7.1 * DAY)


def test_a_host_that_does_not_lead_leaves_refs_at_the_hub_and_rows_alone(world) -> None:
    hubs(world).give(world.project(), str(hub_of(world)), HUMAN)
    id = world.started()
    project, spaces = world.project(), world.app.workspaces
    (spaces.prepare(project, world.task(id)) / "new.txt").write_text("x\n")
    spaces.take(project, world.task(id))
    ended = world.move(id, Status.CANCELLED, reason="no need of it")
    world.app.store.effects_done([it.key for it in world.app.store.pending_effects(id, 100)])
    then = ended.updated + 1000 * DAY
    there, forgotten = refs(world), list[str]()
    world.app.store.forget_texts = forgotten.append

    assert Kind.SNAPSHOT in cleaned(world, then, leads=False)
    assert refs(world) == there
    assert forgotten == []
    assert Kind.HUB in cleaned(world, then)


def test_an_old_clone_of_a_task_that_another_host_has_goes_and_hands_nothing_over(world) -> None:
    hubs(world).give(world.project(), str(hub_of(world)), HUMAN)
    id = world.started()
    place = world.app.workspaces.prepare(world.project(), world.task(id))
    (place / "late.txt").write_text("x\n")
    world.app.store.commit(moved(world.task(id), host="h2", status=Status.STUCK))
    world.app.store.effects_done([it.key for it in world.app.store.pending_effects(id, 100)])
    world.app = replace(world.app, witness=replace(world.app.witness, host="h1"))

    assert housekeeper(world).tidy() == ()
    assert place.is_dir()
    assert Kind.WORKSPACE in cleaned(world, world.task(id).updated + 31 * DAY, leads=False)
    assert not place.exists()
    assert refs(world) == []


def housekeeper(world: World) -> Housekeeper:
    """With room for no clone at all."""
    app = world.app
    return Housekeeper(app.store, app.workspaces, 0, 0, host=app.witness.host)


def cleaned(world: World, now: float, *, leads: bool = True) -> list[Kind]:
    class Then:
        def now(self) -> float:
            return now

        def elapsed(self) -> float:
            return 0.0

    cleaner = cleaner_of(world.app, leads=leads)
    return [it.kind for it in replace(cleaner, clock=Then()).clean(100)]


def test_a_hub_that_will_not_do_is_refused_and_none_is_given(world, tmp_path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", str(tmp_path / "empty.git"))

    for url, why in (
        ("http://hub.example/x.git", "not taken"),
        (str(tmp_path / "none.git"), "did not answer"),
        (str(tmp_path / "empty.git"), "no branch"),
    ):
        with pytest.raises(Refused, match=why):
            hubs(world).give(world.project(), url, HUMAN)
    assert world.project().url == ""
    assert hubs(world).checked() == {}
    for may in (hubs(world).take_away, lambda it, who: hubs(world).give(it, "/x", who)):
        with pytest.raises(Refused, match="needs the right to admin"):
            may(world.project(), replace(HUMAN, may=Right.LAND, by="anna"))


def test_a_project_without_its_hub_is_what_it_was_and_a_hub_that_is_gone_is_told(world) -> None:
    before = world.project()
    hubs(world).give(before, str(hub_of(world)), HUMAN)
    other = open_app({"LOCKGATE_HOME": str(world.home)})
    hub_of(world).rename(world.home.with_name("gone.git"))

    told = hubs(world).follow()

    assert "were not fetched" in told[before.name]
    hubs(world).take_away(world.project(), HUMAN)
    assert world.project() == before == other.store.project(before.id)
    assert hubs(world).follow() == {}
    other.close()
