"""What of a change's own set-up judges, and what is only used: by the files of two layers."""

import pytest

from lockgate.core.layers.compare import Surroundings, compared
from lockgate.core.layers.files import Layer, invoked
from lockgate.core.model.brought import Brought, SetUpFailed, judged_with, question, unprepared
from lockgate.core.model.results import Failed, Passed, proof_of

SITE = ".venv/lib/python3.12/site-packages/"
COMMAND = ".venv/bin/python -m pytest -q"
PASSED = Passed("tests", proof_of("c", None, "ran"))
FINDER = "import sys\nMAPPING = {'app': '/workspace/app'}\nNAMESPACES = {}\ndef install(): ...\n"


def layer(files: dict[str, str]) -> Layer:
    """A link is written as it is told; every other content is its own digest."""
    return Layer(files, lambda path: files.get(path, ""))


def venv(more: dict[str, str] | None = None) -> dict[str, str]:
    """pytest, what it needs, a plug-in, and a library."""
    inside = {
        "pytest/__init__.py": "from _pytest import main\n",
        "_pytest/__init__.py": "import os, pluggy\nfrom iniconfig import x\nimport argcomplete\n",
        "pytest-8.0.dist-info/METADATA": "Requires-Dist: packaging\nRequires-Dist: z; extra == 'z'",
        "pytest-8.0.dist-info/RECORD": "pytest/__init__.py,,\n_pytest/__init__.py,,\n",
        "pytest-8.0.dist-info/entry_points.txt": "[console_scripts]\npytest = pytest:main\n",
        "pluggy/__init__.py": "",
        "pluggy/__pycache__/__init__.pyc": "1",
        "iniconfig/__init__.py": "",
        "packaging/__init__.py": "",
        "packaging-1.0.dist-info/METADATA": "Requires-Dist: pytest\n",
        "packaging-1.0.dist-info/RECORD": "packaging/__init__.py,,\n",
        "cov/__init__.py": "import covering\n",
        "cov-1.0.dist-info/RECORD": "cov/__init__.py,,\n",
        "cov-1.0.dist-info/entry_points.txt": "# x\n[pytest11]\ncov = cov.plugin\n",
        "covering.py": "",
        "lib/__init__.py": "1",
        "lib-1.0.dist-info/RECORD": "lib/__init__.py,,\n",
        "distutils-precedence.pth": "__import__('_distutils_hack').add_shim()\n",
        "_distutils_hack/__init__.py": "",
        "places.pth": "# ours\n/workspace\n",
        "__editable___app_1_finder.py": FINDER,
        "__editable__.app-1.pth": (
            "import __editable___app_1_finder; __editable___app_1_finder.install()\n"
        ),
    }
    outside = {
        ".venv/pyvenv.cfg": "home = /usr/bin\n",
        ".venv/bin/python": "-> /usr/bin/python3",
        ".venv/bin/pytest": "#!",
    }
    return {f"{SITE}{path}": text for path, text in inside.items()} | outside | (more or {})


def judged(change: dict[str, str], base: dict[str, str] | None = None) -> Brought:
    beside = Surroundings(
        inputs=("requirements.txt",),
        commands=(COMMAND, "mypy ."),
        programs=frozenset({"sh", "git"}),
    )
    return compared(layer(venv() if base is None else base), layer(change), beside)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"{SITE}lib/__init__.py", "2"),
        (f"{SITE}new/__init__.py", "1"),
        (f"{SITE}lib-1.0.dist-info/METADATA", "x"),
        (f"{SITE}lib-1.0.dist-info/entry_points.txt", "[console_scripts]\nlib = lib:main\n"),
        (f"{SITE}pluggy/__pycache__/__init__.pyc", "2"),
        (f"{SITE}places.pth", "/workspace/src\n"),
        (f"{SITE}more.pth", "/workspace/src\n/workspace\n"),
        (f"{SITE}__editable___app_1_finder.py", FINDER.replace("/app'", "/src/app'")),
        (".venv/bin/lib", "#!"),
        (".venv/share/man/x", "1"),
        ("build/lib/x.py", "1"),
        ("src/app.egg-info/PKG-INFO", "1"),
        ("tests/__pycache__/x.pyc", "1"),
        ("uv.lock", "1"),
    ],
)
def test_a_library_and_what_belongs_to_it_does_not_judge(path: str, text: str) -> None:
    assert judged(venv({path: text})).judging == ()


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        (f"{SITE}_pytest/__init__.py", "evil", "it replaces pytest 8.0 by another"),
        (f"{SITE}pytest.so", "evil", "it replaces pytest 8.0"),
        (f"{SITE}pluggy/__init__.py", "evil", "it replaces pluggy"),
        (f"{SITE}pluggy/__init__.pyc", "evil", "it replaces pluggy"),
        (f"{SITE}packaging/__init__.py", "evil", "it replaces packaging 1.0"),
        (f"{SITE}argcomplete.py", "evil", "it adds argcomplete"),
        (f"{SITE}covering.py", "evil", "it replaces covering"),
        (f"{SITE}mypy/__init__.py", "evil", "it adds mypy"),
        (f"{SITE}sitecustomize.py", "evil", "as Python starts: sitecustomize.py"),
        (f"{SITE}sitecustomize.pyc", "evil", "as Python starts: sitecustomize.pyc"),
        (f"{SITE}_distutils_hack/__init__.py", "evil", "as Python starts: _distutils_hack"),
        (f"{SITE}places.pth", "/workspace\nimport evil\n", "as Python starts: places.pth"),
        (f"{SITE}places.pth", "/elsewhere\n", "as Python starts: places.pth"),
        (f"{SITE}places.pth", "/workspace/../x\n", "as Python starts: places.pth"),
        (f"{SITE}places.pth", "", "as Python starts: places.pth"),
        (f"{SITE}__editable___app_1_finder.py", f"{FINDER}evil()\n", "as Python starts"),
        (
            f"{SITE}__editable___app_1_finder.py",
            FINDER.replace("/workspace/app", "/elsewhere/x"),
            "as Python starts",
        ),
        (
            f"{SITE}__editable___app_1_finder.py",
            FINDER.replace("{}", "evil()"),
            "as Python starts",
        ),
        (
            f"{SITE}evil.pth",
            "import __editable___evil_finder; __editable___evil_finder.install()",
            "",
        ),
        (f"{SITE}evil-1.0.dist-info/entry_points.txt", "[pytest11]\ne = e\n", "it adds evil 1.0"),
        (f"{SITE}cov-1.0.dist-info/entry_points.txt", "[pytest11]\ncov = evil\n", "it changes the"),
        ("app.egg-info/entry_points.txt", "[pytest11]\ne = e\n", "it adds app"),
        ("odd-info/entry_points.txt", "[pytest11]\ne = e\n", "it adds odd-info"),
        (".venv/pyvenv.cfg", "home = /tmp\n", "it changes .venv/pyvenv.cfg"),
        (".venv/bin/python", "-> /tmp/evil", "it replaces .venv/bin/python"),
        (".venv/bin/python3.9", "evil", "it adds .venv/bin/python3.9, which hides"),
        (".venv/bin/sh", "evil", "it adds .venv/bin/sh, which hides"),
        (".venv/bin/mypy", "evil", "it adds .venv/bin/mypy, which hides"),
        (".venv/lib/python3.12/os.py", "evil", "it changes .venv/lib/python3.12/os.py"),
        ("tests/pyvenv.cfg", "", "it changes tests/pyvenv.cfg"),
        ("conftest.py", "evil", "it leaves conftest.py"),
        ("app/calc.so", "evil", "it leaves app/calc.so"),
    ],
)
def test_what_acts_on_a_run_judges(path: str, text: str, says: str) -> None:
    found = judged(venv({path: text})).judging

    if path.endswith("evil.pth"):  # its finder is not there, so it cannot run
        assert found == ()
    else:
        assert len(found) == 1
        assert says in found[0]


def test_what_goes_is_told_too() -> None:
    change = venv()
    for name in ("cov-1.0.dist-info/entry_points.txt", "cov/__init__.py", "places.pth"):
        del change[f"{SITE}{name}"]
    del change[f"{SITE}__editable___app_1_finder.py"]
    del change[f"{SITE}distutils-precedence.pth"]
    del change[".venv/bin/pytest"]

    assert judged(change).judging == (
        "it removes cov 1.0 (entry points: pytest11)",
        "it removes cov 1.0",
        "it changes what runs as Python starts: distutils-precedence.pth",
    )


def test_a_runner_of_another_version_is_told_with_both() -> None:
    change = {it.replace("pytest-8.0", "pytest-9.0"): text for it, text in venv().items()}
    change[f"{SITE}pytest/__init__.py"] = "new"

    found = judged(change)

    assert found.judging == ("it replaces pytest 8.0 by pytest 9.0",)
    assert found.libraries == ("pytest 8.0 → 9.0",)


def test_a_plug_in_with_the_same_entry_points_in_another_folder_is_known_by_its_files() -> None:
    change = {it.replace("cov-1.0", "cov-2.0"): text for it, text in venv().items()}

    assert judged(change).judging == ()
    assert judged({**change, f"{SITE}cov/__init__.py": "new"}).judging == (
        "it replaces cov 1.0 by cov 2.0",
    )


def test_where_nothing_judges_otherwise_base_s_own_copies_are_used() -> None:
    change = venv({f"{SITE}new-2.0.dist-info/RECORD": "", f"{SITE}__pycache__/py.pyc": "1"})
    del change[f"{SITE}lib-1.0.dist-info/RECORD"]
    change["tests/__pycache__/x.pyc"] = "1"

    found = judged(change)

    assert {f"{SITE}pytest", f"{SITE}pluggy", f"{SITE}covering.py"} <= set(found.bases)
    assert f"{SITE}lib" not in found.bases
    assert set(found.drop) == {f"{SITE}__pycache__/py.pyc", "tests/__pycache__/x.pyc"}
    assert found.libraries == ("removes lib 1.0", "adds new 2.0")


# --- Go and Rust --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "judging"),
    [
        (".go-modules/cache/download/x/@v/v1.zip", ()),
        (".go-modules/example.com/x@v2/x.go", ()),
        (
            ".go-modules/github.com/stretchr/testify@v2/x.go",
            ("it changes github.com/stretchr/testify",),
        ),
        (".go-modules/golang.org/toolchain@v1/bin/go", ("it changes golang.org/toolchain",)),
        (".cargo-home/registry/src/x/lib.rs", ()),
        (".cargo-home/.package-cache", ()),
        (".cargo-home/config.toml", ("it changes .cargo-home/config.toml",)),
        ("tests/cache/download/x", ("it leaves tests/cache/download/x",)),
    ],
)
def test_modules_of_go_and_crates_are_libraries(path: str, judging: tuple[str, ...]) -> None:
    base = {".go-modules/cache/download/x/@v/list": "", ".cargo-home/registry/index": ""}

    assert judged({**base, path: "1"}, base).judging == judging


# --- scripts ------------------------------------------------------------------------------------

MODULES = {
    "node_modules/jest/package.json": (
        '{"version": "29", "dependencies": {"core": "1"}, "peerDependencies": []}'
    ),
    "node_modules/jest/index.js": "1",
    "node_modules/jest/node_modules/core/package.json": '{"version": "1"}',
    "node_modules/@x/env/package.json": '{"version": "1"}',
    "node_modules/left/package.json": '{"version": "1"}',
    "node_modules/runs/package.json": '{"version": "1"}',
    "node_modules/.bin/jest": "-> ../jest/index.js",
    "node_modules/.bin/run-tests": "-> ../runs/index.js",
    "node_modules/.bin/scoped": "-> ../@x/tool/index.js",
    "node_modules/odd/package.json": "not json",
}
SETTINGS = (
    ("package.json", '{"scripts": {"test": "run-tests --x"}, "jest": {"env": "@x/env/deep"}}'),
    ("web/jest.config.js", "module.exports = { preset: 'preset/x', other: `fake` }"),
)


def scripts(change: dict[str, str], base: dict[str, str] | None = None) -> Brought:
    beside = Surroundings(
        inputs=("package.json",),
        commands=("npx jest", "node_modules/.bin/run-tests", "scoped"),
        programs=frozenset({"node"}),
        settings=SETTINGS,
    )
    return compared(layer(MODULES if base is None else base), layer(change), beside)


@pytest.mark.parametrize(
    ("files", "judging"),
    [
        ({"node_modules/left/package.json": '{"version": "2"}'}, ()),
        ({"node_modules/.package-lock.json": "{}"}, ()),
        ({"node_modules/.bin/left": "-> ../left/x.js"}, ()),
        ({"node_modules/jest/index.js": "evil"}, ("it replaces jest 29 by another",)),
        (
            {"node_modules/jest/node_modules/core/package.json": '{"version": "2"}'},
            ("it replaces core 1 by 2",),
        ),
        ({"node_modules/@x/env/index.js": "evil"}, ("it replaces @x/env 1 by another",)),
        ({"node_modules/runs/x.js": "evil"}, ("it replaces runs 1 by another",)),
        ({"node_modules/preset/package.json": "{}"}, ("it adds preset",)),
        ({"tests/node_modules/chai/package.json": "{}"}, ("it adds chai",)),
        ({"node_modules/.bin/jest": "-> evil"}, ("it replaces node_modules/.bin/jest",)),
        (
            {"node_modules/.bin/node": "-> evil"},
            ("it adds node_modules/.bin/node, which hides another program",),
        ),
        ({"node_modules/.cache/x": "evil"}, ("it changes node_modules/.cache/x",)),
        ({"my_node_modules/x": "evil"}, ("it leaves my_node_modules/x",)),
    ],
)
def test_the_runner_of_scripts_with_all_it_depends_on_judges(
    files: dict[str, str], judging: tuple[str, ...]
) -> None:
    assert scripts({**MODULES, **files}).judging == judging


def test_a_dependency_that_lies_elsewhere_is_the_same_one() -> None:
    change = {it.replace("jest/node_modules/core", "core"): text for it, text in MODULES.items()}

    assert scripts(change).judging == ()


def test_a_runner_that_became_a_link_or_went_is_told() -> None:
    gone = {it: text for it, text in MODULES.items() if not it.startswith("node_modules/jest/")}

    assert scripts({**gone, "node_modules/jest": "-> ../vendor/jest"}).judging == (
        "it replaces jest 29 by a link to ../vendor/jest",
        "it removes core 1",
    )
    assert scripts(gone).judging == ("it removes jest 29", "it removes core 1")


def test_links_of_a_store_are_followed_inside_the_layer() -> None:
    store = "node_modules/.pnpm/jest@29/node_modules/"
    base = {
        "node_modules/jest": "-> .pnpm/jest@29/node_modules/jest",
        f"{store}jest/package.json": '{"version": "29", "dependencies": {"core": "1"}}',
        f"{store}core": "-> ../../core@1/node_modules/core",
        "node_modules/.pnpm/core@1/node_modules/core/package.json": '{"version": "1"}',
    }
    evil = {**base, "node_modules/.pnpm/core@1/node_modules/core/x.js": "evil"}

    assert scripts(base, base).judging == ()
    assert scripts(evil, base).judging == ("it replaces core 1 by another",)


def test_a_library_that_is_a_link_into_a_store_is_told_by_its_version() -> None:
    def linked(name: str, version: str) -> dict[str, str]:
        place = f".pnpm/{name.replace('/', '+')}@{version}/node_modules/{name}"
        up = "../" * name.count("/")
        text = f'{{"version": "{version}"}}'
        return {
            f"node_modules/{name}": f"-> {up}{place}",
            f"node_modules/{place}/package.json": text,
        }

    base, change = linked("left", "1"), {**linked("left", "2"), **linked("@x/pad", "3")}
    outside = {"node_modules/own": "-> ../packages/own"}

    assert scripts(change, base).libraries == ("adds @x/pad 3", "left 1 → 2")
    assert scripts({**base, **outside}, base).libraries == ("adds own",)


# --- what is said -------------------------------------------------------------------------------

BROUGHT = Brought(inputs=("a.lock", "b.lock"), judging=(), libraries=("adds x 1",))


def test_a_pass_tells_what_the_change_brought_and_asks_nobody() -> None:
    result = judged_with(BROUGHT, PASSED)

    assert isinstance(result, Passed)
    assert result.asks == ()
    assert result.findings[-1].issue == (
        "judged with the change's own set-up (a.lock, b.lock): adds x 1; what judges is as on base"
    )
    assert judged_with(None, PASSED) is PASSED


def test_where_what_judges_differs_a_human_is_asked_of_the_inputs() -> None:
    many = Brought(("a.lock",), tuple(f"it adds {n}" for n in range(14)), ())

    result = judged_with(many, PASSED)

    assert isinstance(result, Passed)
    assert result.asks == ("a.lock",)
    assert "the same libraries" in result.findings[-1].issue
    assert question(many).endswith("it adds 11 and 2 more")
    assert question(None) == question(BROUGHT) == question(SetUpFailed((), "")) == ""


def test_a_failure_stays_one_and_a_set_up_that_fails_is_one() -> None:
    failed = Failed("tests", ())

    assert judged_with(BROUGHT, failed) is failed
    found = unprepared("tests", SetUpFailed(("a.lock",), "`x` exited 1: no"))
    assert (
        found.findings[0].issue
        == "the set-up failed with the change's own a.lock: `x` exited 1: no"
    )


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (".venv/bin/python -m pytest -q --cov=app", {"python", "pytest"}),
        ("A=1 npx --yes @x/tool && uv run jest", {"npx", "@x/tool", "jest"}),
        ("(cd web; make test) | tee log", {"cd", "make", "tee"}),
    ],
)
def test_the_programs_that_a_command_starts(command: str, found: set[str]) -> None:
    assert found <= invoked((command,))
    assert "app" not in invoked((command,))
