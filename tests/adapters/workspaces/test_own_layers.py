"""A change that brings its own dependencies: its set-up layer, what it tells, and what is held."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from lockgate.adapters.workspaces.files import remove
from lockgate.core.config.settings import EnvSettings, Settings
from lockgate.core.model.brought import Brought, SetUpFailed
from lockgate.core.model.gates import CommandGate, Placement, Where
from lockgate.core.model.task import Task
from lockgate.ports import candidate_of
from tests.adapters.workshop import NEEDS_BOX, Workshop, git
from tests.wheels import RUNNER, installed, wheel

pytestmark = NEEDS_BOX

# What `init` writes for requirement files; the index is a folder of the repository.
SETUP = "python3 -m venv --without-pip .venv && python3 pip.py -r requirements.txt"
NEEDED = "".join(f"{it}\n" for it in RUNNER)
REQUIREMENTS = f"{NEEDED}lib==1.0\n"
COMMAND = ".venv/bin/python -m pytest -q"
# pip takes seconds for each set-up: this one unpacks wheels and runs what an sdist's setup.py is.
PIP = """\
import pathlib, runpy, sys, zipfile
site = next(pathlib.Path(".venv/lib").glob("python*")) / "site-packages"
for line in pathlib.Path(sys.argv[2]).read_text().split():
    name, _, version = line.partition("==")
    if name.startswith("./"):
        runpy.run_path(f"{name}/setup.py", {"SITE": site})
        continue
    name = name.replace("-", "_")
    found = sorted(pathlib.Path("wheels").glob(f"{name}-{version or '*'}-*.whl"))
    if not found:
        sys.exit(f"no matching distribution found for {line}")
    zipfile.ZipFile(found[-1]).extractall(site)
"""


def settings(**fields: object) -> Settings:
    gate = CommandGate(
        name="tests", place=Placement(serial=True, on=(Where.CHANGE,)), command=COMMAND
    )
    env = EnvSettings(**({"setup": SETUP, "inputs": ("requirements.txt",)} | fields))  # type: ignore[arg-type]  # a test's own
    return Settings(formula="none", gates=(gate,), env=env)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index") / "wheels"
    installed(folder, *RUNNER)
    wheel(folder, "lib", "1.0", {"lib/__init__.py": "VALUE = 1\n"})
    wheel(folder, "lib", "2.0", {"lib/__init__.py": "VALUE = 2\n"})
    wheel(folder, "extra", "1.0", {"extra.py": "VALUE = 3\n"})
    return folder


@pytest.fixture
def shop(tmp_path: Path, wheels: Path) -> Workshop:
    return stocked(tmp_path, wheels)


@pytest.fixture(scope="module")
def one_shop(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Workshop:
    """For many tasks, of which none may see another's."""
    return stocked(tmp_path_factory.mktemp("shop"), wheels)


def stocked(place: Path, wheels: Path) -> Workshop:
    shop = Workshop.at(place)
    (shop.root / "wheels").mkdir()
    for it in wheels.iterdir():
        (shop.root / "wheels" / it.name).write_bytes(it.read_bytes())
    (shop.root / "pip.py").write_text(PIP)
    (shop.root / ".gitignore").write_text(".venv\n__pycache__\n")
    shop.commit("requirements.txt", REQUIREMENTS)
    return shop


def changed(shop: Workshop, files: Mapping[str, str], **fields: object) -> Task:
    """A task whose change this is."""
    task = shop.task(**fields)
    git(shop.root, "checkout", "--quiet", "-b", task.branch, "main")
    for name, text in files.items():
        (shop.root / name).parent.mkdir(parents=True, exist_ok=True)
        (shop.root / name).write_text(text)
    git(shop.root, "add", "--all")
    git(shop.root, "commit", "--quiet", "--message", "the change")
    git(shop.root, "checkout", "--quiet", "main")
    change = shop.workspaces.adopt(shop.project, task)
    assert change is not None
    return shop.task(**({"candidate": change.commit} | fields))


def brought(shop: Workshop, task: Task, **fields: object) -> Brought | SetUpFailed | None:
    return shop.workspaces.brought(candidate_of(shop.project, task), settings(**fields))


def told(shop: Workshop, task: Task) -> Brought:
    found = brought(shop, task)
    assert isinstance(found, Brought), found
    return found


def checkout(shop: Workshop, task: Task, *, own: bool) -> Path:
    desk = shop.home / "runs" / task.id / ("own" if own else "base")
    it = candidate_of(shop.project, task)
    shop.workspaces.checkout(it, desk)
    shop.workspaces.set_up(it, settings(), desk, own=own)
    return desk


def has(shop: Workshop, desk: Path, module: str) -> bool:
    return shop.inside(desk, f"ls .venv/lib/python*/site-packages/{module}").code == 0


def everything_below(place: Path) -> bytes:
    files = (it for it in place.rglob("*") if it.is_file() and not it.is_symlink())
    return b"\0".join(it.read_bytes() for it in files)


# --- honest changes -----------------------------------------------------------------------------


def test_a_change_that_edits_no_input_has_base_s_layer(shop: Workshop) -> None:
    task = changed(shop, {"a.txt": "two\n"})

    assert brought(shop, task) is None
    assert not list((shop.home / "runs").glob("*/layer-*"))


def test_a_dependency_that_is_added_is_there_for_the_change_and_told(shop: Workshop) -> None:
    task = changed(shop, {"requirements.txt": f"{REQUIREMENTS}extra==1.0\n"})

    found = told(shop, task)
    desk = checkout(shop, task, own=True)

    assert (found.judging, found.libraries) == ((), ("adds extra 1.0",))
    assert found.inputs == ("requirements.txt",)
    assert shop.inside(desk, ".venv/bin/python -c 'import extra, pytest'").code == 0
    assert not has(shop, checkout(shop, task, own=False), "extra.py")


def test_an_upgrade_of_a_library_is_no_question(shop: Workshop) -> None:
    task = changed(shop, {"requirements.txt": f"{NEEDED}lib==2.0\n"})

    assert told(shop, task) == Brought(
        inputs=("requirements.txt",),
        judging=(),
        libraries=("lib 1.0 → 2.0",),
        bases=told(shop, task).bases,
        drop=told(shop, task).drop,
    )
    seen = shop.inside(
        checkout(shop, task, own=True), ".venv/bin/python -c 'import lib; print(lib.VALUE)'"
    )
    assert seen.out == "2\n"


def test_the_set_up_of_a_change_runs_once_for_its_tree(shop: Workshop) -> None:
    task = changed(shop, {"requirements.txt": f"{REQUIREMENTS}extra\n"})
    told(shop, task)
    (layer,) = (shop.home / "runs" / task.id).glob("layer-*")
    before = layer.stat().st_ino

    told(shop, task)
    checkout(shop, task, own=True)

    assert layer.stat().st_ino == before


@pytest.mark.slow
def test_the_layer_goes_with_its_task(shop: Workshop) -> None:
    task = changed(shop, {"requirements.txt": f"{REQUIREMENTS}extra\n"})
    told(shop, task)

    shop.workspaces.release(shop.project, task)

    assert not list((shop.home / "runs").glob("*"))


def test_after_landing_base_s_layer_is_made_from_base_s_commit(shop: Workshop) -> None:
    task = changed(shop, {"requirements.txt": f"{REQUIREMENTS}extra\n"})
    told(shop, task)
    git(shop.root, "merge", "--quiet", task.branch)
    shop.workspaces.release(shop.project, task)

    later = changed(shop, {"a.txt": "three\n"}, id="later-1", branch="later")

    assert brought(shop, later) is None
    assert has(shop, checkout(shop, later, own=True), "extra.py")


@pytest.mark.slow
def test_two_tasks_with_other_lock_files_have_each_its_own(shop: Workshop) -> None:
    one = changed(shop, {"requirements.txt": f"{REQUIREMENTS}extra\n"}, id="one-1", branch="one")
    two = changed(shop, {"requirements.txt": f"{NEEDED}lib==2.0\n"}, id="two-2", branch="two")

    assert (told(shop, one).libraries, told(shop, two).libraries) == (
        ("adds extra 1.0",),
        ("lib 1.0 → 2.0",),
    )
    assert not has(shop, checkout(shop, two, own=True), "extra.py")


def test_a_set_up_that_fails_is_the_change_s_and_is_not_run_again(shop: Workshop) -> None:
    task = changed(shop, {"requirements.txt": f"{REQUIREMENTS}nowhere==9\n"})

    first = brought(shop, task)
    (note,) = (shop.home / "runs" / task.id).glob(".failed-*")
    before = note.stat().st_mtime_ns

    assert isinstance(first, SetUpFailed)
    assert "no matching distribution found for nowhere==9" in first.why
    assert brought(shop, task) == first
    assert note.stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_layer_that_was_removed_by_hand_is_made_again(shop: Workshop) -> None:
    task = changed(shop, {"requirements.txt": f"{REQUIREMENTS}extra\n"})
    first = told(shop, task)
    for layer in (*(shop.home / "runs" / task.id).glob("layer-*"), shop.home / "layers"):
        remove(layer)

    assert told(shop, task) == first
    assert has(shop, checkout(shop, task, own=True), "extra.py")


# --- cheats by install --------------------------------------------------------------------------

EVIL = "MARK-OF-EVIL"


def _by_setup(text: str) -> Callable[[Workshop], dict[str, str]]:
    """A local distribution whose setup.py does that; SITE is where it installs to."""
    requirements = f"{REQUIREMENTS}./evil\n"
    return lambda _: {"requirements.txt": requirements, "evil/setup.py": f"# {EVIL}\n{text}\n"}


def _by_wheel(
    files: dict[str, str], entry_points: str = ""
) -> Callable[[Workshop], dict[str, str]]:
    def made(shop: Workshop) -> dict[str, str]:
        wheel(shop.root / "wheels", "evil", "1.0", files, entry_points=entry_points)
        return {"requirements.txt": f"{REQUIREMENTS}evil\n"}

    return made


def _vendored(shop: Workshop) -> dict[str, str]:
    """pytest from a folder of the change, with one line more."""
    version = next((shop.root / "wheels").glob("pytest-*")).name.split("-")[1]
    text = f"""
import zipfile
zipfile.ZipFile("wheels/pytest-{version}-py3-none-any.whl").extractall(SITE)
(SITE / "_pytest/runner.py").write_text((SITE / "_pytest/runner.py").read_text() + "# {EVIL}")
"""
    requirements = REQUIREMENTS.replace("pytest\n", "./vendor/pytest\n")
    return {"requirements.txt": requirements, "vendor/pytest/setup.py": text}


CHEATS: dict[str, tuple[Callable[[Workshop], dict[str, str]], str]] = {
    "a plug-in by entry points": (
        _by_wheel({"evil.py": f"# {EVIL}\n"}, "[pytest11]\nevil = evil\n"),
        "adds evil 1.0 (entry points: pytest11)",
    ),
    "entry points beside the sources": (
        _by_setup(
            "import pathlib; it = pathlib.Path('app.egg-info'); it.mkdir()\n"
            "(it / 'entry_points.txt').write_text('[pytest11]\\nevil = app\\n')"
        ),
        "adds app  (entry points: pytest11)",
    ),
    "a vendored pytest": (_vendored, "replaces pytest"),
    "setup.py edits pytest": (
        _by_setup("p = SITE / '_pytest/runner.py'; p.write_text(p.read_text() + '#')"),
        "replaces pytest",
    ),
    "a module over one that pytest imports": (
        _by_wheel({"pluggy/_result.py": f"# {EVIL}\n"}),
        "replaces pluggy",
    ),
    "a package over a module that pytest imports": (
        _by_wheel({"py/__init__.py": f"# {EVIL}\n"}),
        "replaces pytest",
    ),
    "a module that pytest imports where it is there": (
        _by_wheel({"argcomplete.py": f"# {EVIL}\n"}),
        "adds evil 1.0",
    ),
    "code in a .pth": (
        _by_wheel({"evil.pth": "import os; os.environ['X'] = '1'\n"}),
        "runs as Python starts: evil.pth",
    ),
    "sitecustomize": (
        _by_wheel({"sitecustomize.py": f"# {EVIL}\n"}),
        "runs as Python starts: sitecustomize.py",
    ),
    "sitecustomize without its source": (
        _by_setup("(SITE / 'sitecustomize.pyc').write_bytes(b'x')"),
        "runs as Python starts: sitecustomize.pyc",
    ),
    "another interpreter": (
        _by_setup(
            "import pathlib; it = pathlib.Path('.venv/bin/python'); it.unlink()\n"
            "it.write_text('#!/bin/sh\\nexit 0\\n'); it.chmod(0o755)"
        ),
        "replaces .venv/bin/python",
    ),
    "packages of the system": (
        _by_setup(
            "import pathlib; it = pathlib.Path('.venv/pyvenv.cfg')\n"
            "it.write_text(it.read_text().replace('= false', '= true'))"
        ),
        "changes .venv/pyvenv.cfg",
    ),
    "a conftest.py beside the sources": (
        _by_setup(f"open('conftest.py', 'w').write('# {EVIL}')"),
        "leaves conftest.py",
    ),
    "a shell by the name of another": (
        _by_setup(
            "import pathlib; it = pathlib.Path('.venv/bin/sh')\n"
            "it.write_text('#!/bin/true\\n'); it.chmod(0o755)"
        ),
        "adds .venv/bin/sh, which hides another program",
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if number % 3 == 0 else pytest.mark.slow)
        for number, name in enumerate(CHEATS)
    ],
)
@pytest.mark.unmeasured
def test_a_cheat_by_install_is_a_question_that_names_it(one_shop: Workshop, name: str) -> None:
    make, says = CHEATS[name]
    known = f"case-{list(CHEATS).index(name)}"
    task = changed(one_shop, make(one_shop), id=known, branch=known)

    found = told(one_shop, task)

    assert any(says in it for it in found.judging), found.judging


def test_planted_bytecode_is_never_loaded_by_what_judges(shop: Workshop) -> None:
    """The kind that Python takes without looking at the source."""
    plant = """
import importlib.util, marshal, pathlib, sys
def plant(source):
    code = compile("raise SystemExit('MARK-OF-EVIL')", str(source), "exec")
    target = pathlib.Path(importlib.util.cache_from_source(str(source)))
    target.parent.mkdir(parents=True, exist_ok=True)
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
    target.write_bytes(head + marshal.dumps(code))
for it in ("_pytest/runner.py", "py.py", "pluggy/__init__.py"):
    plant(SITE / it)
plant(pathlib.Path("tests/helper.py"))
"""
    shop.commit("tests/helper.py", "VALUE = 1\n")
    task = changed(shop, _by_setup(plant)(shop))

    found = told(shop, task)
    desk = checkout(shop, task, own=True)
    seen = shop.inside(
        desk,
        ".venv/bin/python -c 'import _pytest.runner, pluggy, py, tests.helper; print(1)'",
    )

    assert found.judging == ()
    assert seen.out == "1\n", seen.err


def test_an_evil_set_up_leaves_nothing_that_base_or_another_task_can_see(shop: Workshop) -> None:
    evil = f"""
import os, pathlib
for place in (SITE, pathlib.Path("."), pathlib.Path.home(), pathlib.Path("/tmp"),
              pathlib.Path("/var/tmp"), pathlib.Path("/dev/shm"), pathlib.Path("/base.git"),
              pathlib.Path({str(shop.home)!r}), pathlib.Path.home() / ".cache"):
    for name in ("{EVIL}.py", "sitecustomize.py", "evil.pth"):
        try:
            place.mkdir(parents=True, exist_ok=True)
            (place / name).write_text("{EVIL}")
        except OSError:
            pass
"""
    task = changed(shop, _by_setup(evil)(shop), id="evil-1", branch="evil")
    told(shop, task)
    checkout(shop, task, own=True)

    other = changed(
        shop, {"requirements.txt": f"{REQUIREMENTS}extra\n"}, id="other-1", branch="other"
    )
    desks = [checkout(shop, other, own=it) for it in (True, False)]
    work = shop.workspaces.prepare(shop.project, other)
    shop.workspaces.set_up(candidate_of(shop.project, other), settings(), work)

    seen = [work, shop.home / "layers", shop.home / "runs" / other.id]
    assert EVIL.encode() in everything_below(shop.home / "runs" / task.id)
    assert not any(EVIL.encode() in everything_below(it) for it in seen)
    names = {name for it in seen for _, _, files in os.walk(it) for name in files}
    for desk in desks:
        assert shop.inside(desk, f"grep -r {EVIL} .").out == ""
        names |= {Path(it).name for it in shop.inside(desk, "find .").out.splitlines()}
    assert "extra.py" in names
    assert not {"sitecustomize.py", "evil.pth", f"{EVIL}.py"} & names


# --- scripts ------------------------------------------------------------------------------------

NODE = 'mkdir -p node_modules && cp -a packages/. node_modules/ && sh -c "$(cat install.sh)"'


@pytest.mark.parametrize(
    ("files", "judging"),
    [
        ({"packages/leftpad/package.json": '{"name":"leftpad","version":"2.0.0"}'}, ()),
        (
            {"packages/jest/index.js": "// evil\n"},
            ("it replaces jest 29.0.0 by another",),
        ),
        (
            {"packages/jest-core/index.js": "// evil\n"},
            ("it replaces jest-core 29.0.0 by another",),
        ),
        (
            {"install.sh": "echo // evil >> node_modules/jest-core/index.js\n"},
            ("it replaces jest-core 29.0.0 by another",),
        ),
        (
            {"packages/fake-env/package.json": '{"name":"fake-env","version":"1.0.0"}'},
            ("it adds fake-env 1.0.0",),
        ),
        (
            {"install.sh": "mkdir -p node_modules/.bin; ln -sf ../x node_modules/.bin/node\n"},
            ("it adds node_modules/.bin/node, which hides another program",),
        ),
    ],
)
def test_of_node_modules_the_runner_with_its_dependencies_judges(
    tmp_path: Path, files: dict[str, str], judging: tuple[str, ...]
) -> None:
    shop = Workshop.at(tmp_path)
    base = {
        "packages/jest/package.json": (
            '{"name":"jest","version":"29.0.0","dependencies":{"jest-core":"29"}}'
        ),
        "packages/jest/index.js": "require('jest-core')\n",
        "packages/jest-core/package.json": '{"name":"jest-core","version":"29.0.0"}',
        "packages/jest-core/index.js": "1\n",
        "packages/leftpad/package.json": '{"name":"leftpad","version":"1.0.0"}',
        "package.json": '{"name":"x","jest":{"testEnvironment":"fake-env"}}',
        "lock": "1\n",
        "install.sh": "true\n",
    }
    for name, text in base.items():
        shop.commit(name, text)
    task = changed(shop, {**files, "lock": "2\n"})

    found = brought(shop, task, setup=NODE, inputs=("lock",))

    assert isinstance(found, Brought), found
    assert found.judging == judging
