"""What a set-up is given, what it may keep, and what becomes of one that goes wrong."""

import time
from pathlib import Path

import pytest

from lockgate.adapters.workspaces import layers
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
    seen = (change / "seen.txt").read_text().splitlines()
    assert "HTTPS_PROXY=http://proxy.corp:3128" in seen
    assert not any("secret" in it or it.startswith(("PIP_INDEX", "UV_INDEX")) for it in seen)
    assert (change / "bundle.txt").read_text() == "CERTIFICATE\n"


def test_a_cache_is_written_by_base_s_set_up_alone_and_a_change_s_sees_it(shop: Workshop) -> None:
    told = settings(
        'mkdir -p "$PIP_CACHE_DIR"; cat lock >> "$PIP_CACHE_DIR/kept"; cp "$PIP_CACHE_DIR/kept" out'
    )
    task = changed(shop)

    base, change = set_up(shop, told), own(shop, task, told)

    assert (base / "out").read_text() == "1\n"
    assert (change / "out").read_text() == "1\n2\n"
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
