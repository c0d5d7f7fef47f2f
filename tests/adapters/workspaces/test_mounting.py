"""How a workspace shows a layer's large folders: mounted for those who work in it, never copied."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockgate.adapters.sandbox.layered import How, layered_at, place_of
from lockgate.adapters.workspaces import layer_notes, mounting
from lockgate.adapters.workspaces.files import remove, size_of
from lockgate.adapters.workspaces.layer_notes import note_of
from lockgate.core.config.settings import EnvSettings, Settings
from lockgate.core.model.task import Task
from lockgate.ports import candidate_of
from tests.adapters.workshop import NEEDS_BOX, Workshop, git

pytestmark = NEEDS_BOX

# A large folder of dependencies, a small one, a file among the tracked ones, an empty folder.
SETUP = (
    "mkdir -p node_modules/big .venv src empty && head -c 2000000 /dev/zero > node_modules/big/one"
    " && cat lock > node_modules/big/version && echo 1 > .venv/small && echo 1 > src/made"
)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    shop = Workshop.at(tmp_path)
    shop.commit("lock", "1\n")
    shop.commit("src/code", "1\n")
    return shop


def told(setup: str = SETUP, **fields: object) -> Settings:
    env = EnvSettings(**({"setup": setup, "inputs": ("lock",)} | fields))  # type: ignore[arg-type]  # a test's own
    return Settings(formula="none", gates=(), env=env)


def set_up(shop: Workshop, task: Task, settings: Settings | None = None) -> Path:
    place = shop.workspaces.prepare(shop.project, task)
    shop.workspaces.set_up(candidate_of(shop.project, task), settings or told(), place)
    return place


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def layer_in(shop: Workshop) -> Path:
    (layer,) = (it for it in (shop.home / "layers").glob("*/*") if it.is_dir())
    return layer


def test_an_agent_sees_all_of_the_layer_and_only_its_small_parts_are_copied(shop: Workshop) -> None:
    task = shop.task()
    place = set_up(shop, task)

    seen = shop.agent(
        task, "cat node_modules/big/version .venv/small src/made src/code; ls -d empty"
    )

    assert seen.out == "1\n1\n1\n1\nempty\n", seen.err
    assert list((place / "node_modules").iterdir()) == []
    assert (place / ".venv" / "small").read_text() == "1\n"
    assert size_of(place) + size_of(place_of(place)) < 1_000_000


def test_what_an_agent_installs_stays_over_its_sessions_and_reaches_nobody_else(
    shop: Workshop,
) -> None:
    task, other = shop.task(), shop.task("other-1", branch="other")
    set_up(shop, task)
    set_up(shop, other)

    wrote = shop.agent(
        task,
        "mkdir node_modules/new && echo mine > node_modules/new/it && rm node_modules/big/one"
        " && chmod -R u+w node_modules && echo evil > node_modules/big/version",
    )
    set_up(shop, task)  # as before each session
    mine = shop.agent(task, "cat node_modules/new/it node_modules/big/version; ls node_modules/big")
    others = shop.agent(other, "ls node_modules; cat node_modules/big/version; ls node_modules/big")

    assert wrote.code == 0, wrote.err
    assert mine.out == "mine\nevil\nversion\n"
    assert others.out == "big\n1\none\nversion\n"
    assert (layer_in(shop) / "node_modules" / "big" / "version").read_text() == "1\n"


def test_nothing_of_it_is_part_of_the_change(shop: Workshop) -> None:
    task = shop.task()
    set_up(shop, task)

    shop.agent(task, "echo mine > node_modules/new; echo 2 > src/code; echo 2 > src/more")
    change = shop.taken(task)

    assert change.files == ("src/code", "src/more")


def test_git_in_the_workspace_knows_of_no_change_after_the_set_up(shop: Workshop) -> None:
    task = shop.task()
    set_up(shop, task)

    assert shop.agent(task, "git status --porcelain").out == ""


@contextmanager
def begun(shop: Workshop, place: Path, command: str) -> Generator[subprocess.Popen[str]]:
    """An agent at work, once it has made node_modules/here."""
    it = layered_at(place)
    assert it is not None
    doing = subprocess.Popen(
        (sys.executable, "-c", _AGENT, str(shop.root), str(shop.home), str(place), command),
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    try:
        until((it.written / "node_modules" / "here").exists)
        yield doing
    finally:
        doing.kill()
        doing.wait()


_AGENT = """
import sys
from pathlib import Path
from tests.adapters.workshop import Workshop
root, home, place, command = sys.argv[1:]
print(Workshop(Path(root), Path(home)).inside(Path(place), command).out, end="")
"""


def test_two_who_work_at_once_see_what_each_other_writes(shop: Workshop) -> None:
    """A session, and a shell that a human opens meanwhile."""
    task = shop.task()
    place = set_up(shop, task)
    waits = "ls node_modules/new; touch node_modules/here;"
    waits += " until cat node_modules/new 2>/dev/null; do sleep 0.05; done"
    writes = "ls node_modules; cd node_modules && echo hello > new.1 && mv new.1 new"

    with begun(shop, place, waits) as first:
        second = shop.inside(place, writes)
        heard = first.communicate(timeout=60)[0]

    assert second.out == "big\nhere\n", second.err
    assert heard == "hello\n"
    it = layered_at(place)
    assert it is not None
    assert not it.in_use


def test_a_layer_that_is_removed_by_hand_while_an_agent_works_costs_no_work(shop: Workshop) -> None:
    task = shop.task()
    place = set_up(shop, task)
    works = "touch node_modules/here; until [ -e go ]; do sleep 0.05; done;"
    works += (
        " echo mine > node_modules/mine; echo work > src/code; cat node_modules/big/one | wc -c"
    )

    with begun(shop, place, works) as working:
        remove(shop.home / "layers")
        (place / "go").touch()
        said = working.communicate(timeout=60)[0]
    set_up(shop, task)

    assert said.strip().isdigit(), "it came to its end"
    seen = shop.agent(task, "cat node_modules/mine src/code node_modules/big/version")
    assert seen.out == "mine\nwork\n1\n", seen.err


def test_a_new_layer_comes_under_what_the_agent_installed(shop: Workshop) -> None:
    task = shop.task()
    set_up(shop, task)
    shop.agent(
        task,
        "cd node_modules; echo mine > new; echo old > big/version; rm big/one",
    )
    shop.commit("lock", "2\n")

    place = set_up(shop, shop.task())

    seen = shop.agent(task, "cat node_modules/new node_modules/big/version; ls node_modules/big")
    assert seen.out == "mine\n2\none\nversion\n", seen.err
    it = layered_at(place)
    assert it is not None
    assert [room.name for room in place_of(place).iterdir() if room.is_dir()] == [it.room.name]


def test_a_layer_that_is_removed_by_hand_is_made_again_for_the_next_session(shop: Workshop) -> None:
    task = shop.task()
    place = set_up(shop, task)
    shop.agent(task, "echo mine > node_modules/new; echo edited > src/made")
    remove(shop.home / "layers")
    (place / "node_modules").rmdir()

    set_up(shop, task)

    seen = shop.agent(task, "cat node_modules/new node_modules/big/version src/made")
    assert seen.out == "mine\n1\nedited\n", seen.err


def test_a_session_whose_layer_is_gone_does_not_begin_and_says_so(shop: Workshop) -> None:
    task = shop.task()
    place = set_up(shop, task)
    layer = layer_in(shop)
    remove(layer)

    seen = shop.inside(place, "cat node_modules/big/version")

    assert seen.code != 0
    assert "the set-up layer cannot be seen" in seen.err


def test_a_layer_that_a_workspace_shows_is_not_removed_for_room(shop: Workshop) -> None:
    task = shop.task()
    set_up(shop, task)
    layer = layer_in(shop)
    when = time.time() - 5 * 3600
    os.utime(layer.with_name(f".made-{layer.name}"), (when, when))

    shop.workspaces.keep_set_ups_within(0)
    assert layer.is_dir()
    shop.workspaces.release(shop.project, task)
    shop.workspaces.keep_set_ups_within(0)

    assert not layer.exists()
    assert not place_of(shop.workspaces.place(task.id)).exists()


def test_a_folder_that_the_branch_has_files_in_is_copied(shop: Workshop) -> None:
    task = shop.task(branch="change")
    git(shop.root, "checkout", "--quiet", "-b", "change", "main")
    (shop.root / "node_modules").mkdir()
    (shop.root / "node_modules" / "patched").write_text("tracked\n")
    git(shop.root, "add", "--force", "node_modules")
    git(shop.root, "commit", "--quiet", "--message", "patched")
    git(shop.root, "checkout", "--quiet", "main")

    place = set_up(shop, task)

    assert layered_at(place) is None
    assert (
        shop.agent(task, "cat node_modules/patched node_modules/big/version").out == "tracked\n1\n"
    )


def test_a_folder_into_which_a_file_is_copied_is_not_mounted(shop: Workshop) -> None:
    (shop.root / "node_modules").mkdir()
    (shop.root / "node_modules" / "mine").write_text("the user's\n")
    task = shop.task()

    place = set_up(shop, task, told(copy=("node_modules/mine",)))

    assert layered_at(place) is None
    assert (
        shop.agent(task, "cat node_modules/mine node_modules/big/version").out == "the user's\n1\n"
    )


def test_a_folder_that_the_agent_made_a_link_is_left_alone(shop: Workshop) -> None:
    task = shop.task()
    place = set_up(shop, task)
    (place / "node_modules").rmdir()
    (place / "node_modules").symlink_to("/usr")

    set_up(shop, task)

    assert shop.agent(task, "readlink node_modules; ls -d /usr/bin").out == "/usr\n/usr/bin\n"


def test_where_no_overlay_can_be_kept_the_folders_are_read_only(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounting, "can_keep_overlay", lambda _: False)
    monkeypatch.setattr(mounting, "can_reflink", lambda *_: False)
    task = shop.task()

    place = set_up(shop, task)

    seen = shop.agent(task, "cat node_modules/big/version; echo x > node_modules/x")
    it = layered_at(place)
    assert it is not None
    assert it.how is How.READ_ONLY
    assert seen.out == "1\n"
    assert "Read-only" in seen.err
    assert not (layer_in(shop) / "node_modules" / "x").exists()


def test_where_a_reflink_can_be_had_it_is_preferred_to_that(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounting, "can_keep_overlay", lambda _: False)
    monkeypatch.setattr(mounting, "can_reflink", lambda *_: True)

    place = set_up(shop, shop.task())

    assert layered_at(place) is None
    made = place / "node_modules" / "big" / "version"
    assert made.read_text() == "1\n"
    assert made.stat().st_nlink == 1


@pytest.mark.parametrize(
    ("setup", "folders"),
    [
        (
            "mkdir -p a/node_modules && head -c 2000000 /dev/zero > a/node_modules/x",
            ("a/node_modules",),
        ),
        ("mkdir env && touch env/pyvenv.cfg && head -c 2000000 /dev/zero > env/x", ("env",)),
        (
            "mkdir -p out/t && touch out/CACHEDIR.TAG && head -c 2000000 /dev/zero > out/t/x",
            ("out",),
        ),
        ("mkdir made && head -c 2000000 /dev/zero > made/x", ()),
        ("mkdir .go-modules && head -c 2000000 /dev/zero > .go-modules/x", (".go-modules",)),
        ("mkdir .venv && head -c 200000 /dev/zero > .venv/x", ()),
        ("mkdir .venv && cd .venv && seq 250 | xargs touch", (".venv",)),
        ("mkdir -p src/__pycache__ && head -c 2000000 /dev/zero > x && touch pyvenv.cfg", ()),
        (
            "d=node_modules/a/node_modules; mkdir -p $d && head -c 2000000 /dev/zero > $d/x",
            ("node_modules",),
        ),
    ],
)
@pytest.mark.unmeasured
def test_only_large_folders_that_no_change_takes_in_are_mounted(
    shop: Workshop, setup: str, folders: tuple[str, ...]
) -> None:
    place = set_up(shop, shop.task(), told(setup))

    assert note_of(layer_in(shop)).folders == folders
    it = layered_at(place)
    assert (it.folders if it else ()) == folders


def test_a_folder_that_base_has_files_in_is_the_project_s_own(shop: Workshop) -> None:
    (shop.root / "node_modules").mkdir()
    (shop.root / "node_modules" / "ours").write_text("tracked\n")
    git(shop.root, "add", "--force", "node_modules")
    git(shop.root, "commit", "--quiet", "--message", "ours")

    place = set_up(shop, shop.task())

    assert layered_at(place) is None
    assert (place / "node_modules" / "big" / "version").exists()


def test_a_layer_s_size_is_noted_when_it_is_made(shop: Workshop) -> None:
    set_up(shop, shop.task())

    note = note_of(layer_in(shop))

    assert note.size == size_of(layer_in(shop))
    assert note.files == 4
    assert layer_notes.note_of(shop.home / "caches" / shop.project.id).size == size_of(
        shop.home / "caches" / shop.project.id / "files"
    )
