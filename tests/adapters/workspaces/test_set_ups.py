"""What a set-up is given, what it may keep, and what becomes of one that goes wrong."""

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.sandbox.scratch import room_for
from lockgate.adapters.workspaces import layers, setup
from lockgate.adapters.workspaces.files import remove
from lockgate.core.config.settings import EnvSettings, Settings
from lockgate.core.model.brought import SetUpFailed
from lockgate.core.model.task import Task
from lockgate.errors import Unavailable
from lockgate.ports import candidate_of
from tests.adapters.workshop import NEEDS_BOX, Workshop, git

pytestmark = NEEDS_BOX


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    shop = Workshop.at(tmp_path)
    shop.commit("lock", "1\n")
    return shop


def settings(setup: str, **fields: object) -> Settings:
    env = EnvSettings(**({"setup": setup, "inputs": ("lock",)} | fields))  # type: ignore[arg-type]  # a test's own
    return Settings(formula="none", gates=(), env=env)


def set_up(shop: Workshop, told: Settings) -> Path:
    """Base's, in a task's clone."""
    task = shop.task()
    place = shop.workspaces.prepare(shop.project, task)
    shop.workspaces.set_up(candidate_of(shop.project, task), told, place)
    return place


def changed(shop: Workshop) -> Task:
    """A task whose change edits the input."""
    git(shop.root, "checkout", "--quiet", "-b", "change", "main")
    shop.commit("lock", "2\n", branch="change")
    git(shop.root, "checkout", "--quiet", "main")
    change = shop.workspaces.adopt(shop.project, shop.task("other-1", branch="change"))
    assert change is not None
    return shop.task("other-1", branch="change", candidate=change.commit)


def own(shop: Workshop, task: Task, told: Settings) -> Path:
    """The change's, in a checkout of it."""
    desk = shop.home / "runs" / task.id / "desk"
    it = candidate_of(shop.project, task)
    shop.workspaces.checkout(it, desk)
    shop.workspaces.set_up(it, told, desk, own=True)
    return desk


def test_base_s_set_up_has_the_company_s_variables_and_a_change_s_no_index(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundle = tmp_path / "corp.pem"
    bundle.write_text("CERTIFICATE\n")
    bundle.chmod(0o644)
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@proxy.corp:3128")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:secret@pypi.corp/simple")
    monkeypatch.setenv("UV_INDEX_CORP_PASSWORD", "secret-of-mine")
    monkeypatch.setenv("OTHER_TOKEN", "secret-too")
    told = settings(
        'env > seen.txt; cat "$SSL_CERT_FILE" > bundle.txt', passed=("UV_INDEX_CORP_PASSWORD",)
    )
    task = changed(shop)

    base, change = set_up(shop, told), own(shop, task, told)

    seen = (base / "seen.txt").read_text().splitlines()
    assert "HTTPS_PROXY=http://me:secret@proxy.corp:3128" in seen
    assert "PIP_INDEX_URL=https://pypi.corp/simple" in seen
    assert "UV_INDEX_CORP_PASSWORD=secret-of-mine" in seen
    seen = shop.inside(change, "cat seen.txt").out.splitlines()
    assert "HTTPS_PROXY=http://proxy.corp:3128" in seen
    assert not any("secret" in it or it.startswith(("PIP_INDEX", "UV_INDEX")) for it in seen)
    assert shop.inside(change, "cat bundle.txt").out == "CERTIFICATE\n"


def test_a_cache_is_written_by_base_s_set_up_alone_and_a_change_s_sees_it(shop: Workshop) -> None:
    told = settings(
        'mkdir -p "$PIP_CACHE_DIR"; cat lock >> "$PIP_CACHE_DIR/kept"; cp "$PIP_CACHE_DIR/kept" out'
    )
    task = changed(shop)

    base, change = set_up(shop, told), own(shop, task, told)

    assert (base / "out").read_text() == "1\n"
    assert shop.inside(change, "cat out").out == "1\n2\n"
    (kept,) = (shop.home / "caches").glob("*/files/pip/kept")
    assert kept.read_text() == "1\n"
    assert [it.name for it in kept.parents[2].iterdir()] == ["files"]


def test_a_set_up_that_failed_is_not_run_for_each_command_and_tells_its_end_once(
    shop: Workshop,
) -> None:
    told = settings('echo x >> "$PIP_CACHE_DIR-count"; echo much; echo no such package >&2; exit 3')

    with pytest.raises(Unavailable, match=r"exited 3: much\s+no such package"):
        set_up(shop, told)
    with pytest.raises(Unavailable, match=r"was not run again: no such package$") as again:
        set_up(shop, told)

    (count,) = (shop.home / "caches").glob("*/files/pip-count")
    assert count.read_text() == "x\n"
    assert "much\n" not in str(again.value)


def test_one_that_failed_is_run_again_after_a_while(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = settings('echo x >> "$PIP_CACHE_DIR-count"; test $(wc -l < "$PIP_CACHE_DIR-count") = 2')
    with pytest.raises(Unavailable):
        set_up(shop, told)
    monkeypatch.setattr(layers, "AGAIN_AFTER", 0.0)

    set_up(shop, told)

    assert not list((shop.home / "layers").glob(".failed-*"))


def test_a_set_up_that_fills_the_disk_is_ended(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "MOST_BYTES", 1 << 20)
    told = settings("head -c 5000000 /dev/zero > big; sleep 60")
    begun = time.monotonic()

    with pytest.raises(Unavailable, match="was cut"):
        set_up(shop, told)

    assert time.monotonic() - begun < 40
    assert not list((shop.home / "layers" / shop.project.id).glob("*"))


def test_a_change_s_set_up_that_fills_the_disk_is_ended_and_told_to_its_author(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = changed(shop)
    told = settings("test $(cat lock) = 1 || { head -c 5000000 /dev/zero > big; sleep 600; }")
    set_up(shop, told)
    monkeypatch.setattr(layers, "MOST_BYTES", 1 << 20)

    found = shop.workspaces.brought(candidate_of(shop.project, task), told)

    assert isinstance(found, SetUpFailed)
    assert "was cut (scratch)" in found.why
    assert not list((shop.home / "runs").glob("*/layer-*"))


def test_base_s_set_up_that_fails_half_way_leaves_nothing_and_no_workspace_gets_half(
    shop: Workshop,
) -> None:
    with pytest.raises(Unavailable, match="no more"):
        set_up(shop, settings("mkdir half && echo 1 > half/made && echo no more >&2 && exit 1"))

    left = [it for it in (shop.home / "layers").rglob("*") if it.name in {"half", "made"}]
    assert left == []
    assert not (shop.workspaces.place(shop.task().id) / "half").exists()


def test_two_tasks_whose_lock_files_differ_are_set_up_at_once(shop: Workshop) -> None:
    told = settings("cat lock > made; sleep 0.5; cat lock >> made")
    tasks = list[Task]()
    for number in ("2", "3"):
        git(shop.root, "checkout", "--quiet", "-b", f"change-{number}", "main")
        shop.commit("lock", f"{number}\n", branch=f"change-{number}")
        git(shop.root, "checkout", "--quiet", "main")
        task = shop.task(f"other-{number}", branch=f"change-{number}")
        change = shop.workspaces.adopt(shop.project, task)
        assert change is not None
        tasks.append(replace(task, candidate=change.commit))

    with ThreadPoolExecutor(2) as pool:
        desks = list(pool.map(lambda it: own(shop, it, told), tasks))

    seen = [shop.inside(desk, "cat made").out for desk in desks]
    assert seen == ["2\n2\n", "3\n3\n"]


@pytest.mark.skipif(not shutil.which("npm"), reason="needs npm")
def test_a_lock_file_that_does_not_match_its_manifest_fails_in_the_tool_s_own_words(
    shop: Workshop,
) -> None:
    shop.commit("package.json", '{"name": "x", "version": "1.0.0"}\n')
    shop.commit("lib/package.json", '{"name": "lib", "version": "1.0.0"}\n')
    shop.commit("package-lock.json", LOCK)
    told = settings("npm ci --offline", inputs=("package.json", "package-lock.json"))
    git(shop.root, "checkout", "--quiet", "-b", "change", "main")
    needs = '{"name": "x", "version": "1.0.0", "dependencies": {"lib": "file:./lib"}}\n'
    shop.commit("package.json", needs, branch="change")
    git(shop.root, "checkout", "--quiet", "main")
    task = shop.task("other-1", branch="change")
    change = shop.workspaces.adopt(shop.project, task)
    assert change is not None

    found = shop.workspaces.brought(candidate_of(shop.project, task, change.commit), told)

    assert isinstance(found, SetUpFailed)
    assert found.inputs == ("package.json",)
    assert "package.json and package-lock.json" in found.why
    assert "in sync" in found.why
    assert found.why.count("\n…\n") == 1


def test_of_a_long_complaint_its_beginning_is_told_and_later_the_line_that_says_what_is_wrong(
    shop: Workshop,
) -> None:
    told = settings(
        "echo E1 error >&2; echo error: the lock file and the manifest do not fit together >&2;"
        " seq 2000 >&2; echo a log is elsewhere >&2; exit 1"
    )

    with pytest.raises(Unavailable, match=r"do not fit together\n[\s\S]*…[\s\S]*log is elsewhere"):
        set_up(shop, told)
    with pytest.raises(Unavailable, match="not run again: error: the lock file and the manifest"):
        set_up(shop, told)


LOCK = """\
{"name": "x", "version": "1.0.0", "lockfileVersion": 3, "requires": true,
 "packages": {"": {"name": "x", "version": "1.0.0"}}}
"""


@pytest.mark.parametrize(
    ("setup", "left"),
    [
        ("echo changed > a.txt; echo 1 > out", ["out"]),
        ("(sleep 99; echo 1 > late) & echo 1 > out", ["out"]),
        ("ln -s /etc out", ["out"]),
    ],
)
def test_of_an_odd_set_up_only_what_it_left_beside_the_tracked_files_is_kept(
    shop: Workshop, setup: str, left: list[str]
) -> None:
    place = set_up(shop, settings(setup))

    (layer,) = (it for it in (shop.home / "layers").glob("*/*") if it.is_dir())
    assert sorted(it.name for it in layer.iterdir()) == left
    assert (place / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("setup", ["read -r answer", "test -t 0", "echo half > out; exit 1"])
def test_a_change_s_set_up_that_wants_a_terminal_or_ends_half_way_fails_and_leaves_nothing(
    shop: Workshop, setup: str
) -> None:
    task = changed(shop)
    told = settings(f"test $(cat lock) = 1 || {{ {setup}; }}")

    found = shop.workspaces.brought(candidate_of(shop.project, task), told)

    assert isinstance(found, SetUpFailed)
    assert not list((shop.home / "runs").glob("*/layer-*"))


# --- how a layer is seen ------------------------------------------------------------------------


def checked_out(shop: Workshop, told: Settings) -> Path:
    """A gate's checkout of base."""
    task = shop.task()
    assert task.pinned is not None
    desk = shop.home / "runs" / task.id / "1"
    it = candidate_of(shop.project, task, task.pinned.base_commit)
    shop.workspaces.checkout(it, desk)
    shop.workspaces.set_up(it, told, desk)
    return desk


def test_a_gate_s_checkout_is_seen_over_the_layer_which_nothing_changes(shop: Workshop) -> None:
    told = settings(
        "mkdir -p .venv src && echo 1 > .venv/made && echo 1 > src/made; echo x > a.txt"
    )
    shop.commit("src/code", "1\n")
    shop.commit(".gitignore", ".venv\n")
    desk = checked_out(shop, told)

    first = shop.inside(
        desk,
        "cat .venv/made src/made src/code a.txt; git status --porcelain;"
        " chmod 777 .venv .venv/made; echo evil > .venv/made; rm src/made; echo new > .venv/new",
    )
    again = shop.inside(desk, "cat .venv/made src/made; ls .venv")

    assert first.out == "1\n1\n1\none\n", first.err
    assert again.out == "1\n1\nmade\n", again.err
    assert not (desk / ".venv").exists()


def test_a_tracked_file_is_seen_in_place_of_one_that_the_set_up_made(shop: Workshop) -> None:
    told = settings("echo made > note; echo made > other")
    task = shop.task("other-1", branch="change")
    git(shop.root, "checkout", "--quiet", "-b", "change", "main")
    shop.commit("note", "tracked\n", branch="change")
    git(shop.root, "checkout", "--quiet", "main")
    change = shop.workspaces.adopt(shop.project, task)
    assert change is not None
    desk = shop.home / "runs" / task.id / "1"
    it = candidate_of(shop.project, task, change.commit)
    shop.workspaces.checkout(it, desk)

    shop.workspaces.set_up(it, told, desk)

    assert shop.inside(desk, "cat note other").out == "tracked\nmade\n"


def test_a_layer_that_is_gone_is_told_and_made_again(shop: Workshop) -> None:
    told = settings("echo 1 > made")
    desk = checked_out(shop, told)
    remove(shop.home / "layers")

    with pytest.raises(Unavailable, match="the set-up layer under it is gone"):
        shop.inside(desk, "cat made")
    shop.workspaces.discard(desk)

    assert shop.inside(checked_out(shop, told), "cat made").out == "1\n"


def test_where_no_overlay_can_be_had_a_checkout_has_a_copy(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "can_overlay", lambda _: False)

    desk = checked_out(shop, settings("echo 1 > made"))

    assert (desk / "made").read_text() == "1\n"
    (layer,) = (it for it in (shop.home / "layers").glob("*/*") if it.is_dir())
    assert not (desk / "made").samefile(layer / "made")


def test_what_services_are_prepared_in_has_a_copy_of_the_change_s_own_layer(
    shop: Workshop,
) -> None:
    """It is mounted as it is, not as a gate's checkout."""
    told, task = settings("cp lock made"), changed(shop)
    it = candidate_of(shop.project, task)
    tree = shop.home / "runs" / task.id / "services" / ".new-data-tree"
    shop.workspaces.checkout(it, tree)

    shop.workspaces.set_up(it, told, tree, own=True)

    assert (tree / "made").read_text() == "2\n"


def test_a_room_without_an_overlay_has_both_the_checkout_winning(shop: Workshop) -> None:
    desk = checked_out(shop, settings("mkdir d; echo 1 > d/made"))
    (desk / "d").mkdir()
    (desk / "d" / "mine").write_text("2\n")

    with room_for(desk, 0) as room:
        found = {it.name: it.read_text() for it in (room.place / "tree" / "d").iterdir()}

    assert found == {"made": "1\n", "mine": "2\n"}


# --- how much of it is kept ---------------------------------------------------------------------


def old(place: Path, hours: float) -> None:
    """As if it had been used then."""
    when = time.time() - hours * 3600
    os.utime(place, (when, when))


def test_layers_go_the_longest_unused_first_and_none_that_was_used_lately(shop: Workshop) -> None:
    told = [settings(f"head -c 300000 /dev/urandom > big{n}") for n in range(3)]
    for it in told:
        set_up(shop, it)
    marks = sorted((shop.home / "layers").glob("*/.made-*"), key=lambda it: it.stat().st_mtime)
    for mark, hours in zip(marks, (4, 5, 0), strict=True):
        old(mark, hours)
    whole = shop.workspaces.sizes()["layers"] + shop.workspaces.sizes()["caches"]

    def left() -> list[bool]:
        return [mark.with_name(mark.name.removeprefix(".made-")).is_dir() for mark in marks]

    shop.workspaces.keep_set_ups_within(whole)
    assert left() == [True, True, True]
    shop.workspaces.keep_set_ups_within(whole - 1)
    assert left() == [True, False, True]
    shop.workspaces.keep_set_ups_within(0)
    assert left() == [False, False, True]
    assert (set_up(shop, told[1]) / "big1").exists()


def test_caches_go_after_layers_where_nobody_has_used_them_lately(shop: Workshop) -> None:
    set_up(shop, settings('head -c 300000 /dev/urandom > "$PIP_CACHE_DIR-big"; echo 1 > out'))
    (cache,) = (it for it in (shop.home / "caches").iterdir() if it.is_dir())
    shop.workspaces.keep_set_ups_within(0)
    assert cache.is_dir()
    old(cache, 4)

    shop.workspaces.keep_set_ups_within(0)

    assert not cache.exists()
