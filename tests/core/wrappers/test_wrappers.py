"""What a gate's command resolves to, and which of that a change edits."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.model.findings import Finding, Priority
from lockgate.core.model.results import Broken, Failed, Passed, Proof, Waiting
from lockgate.core.wrappers.edits import agreed, asking, edits, laid, question
from lockgate.core.wrappers.entries import MOST, commands_behind, entries
from lockgate.core.wrappers.makefiles import Read

FILES = {
    "test.sh": "#!/bin/sh\nset -e\n. scripts/env.sh\npython tools/run.py\n",
    "scripts/env.sh": "export A=1\n",
    "scripts/deep.sh": 'cd "$(dirname "$0")/.."\n"$PWD/scripts/env.sh"\n',
    "tools/run.py": "import subprocess\nsubprocess.run(['sh', 'scripts/env.sh'])\n",
    "tools/mod/__main__.py": "print(1)\n",
    "Makefile": (
        "VERSION = 1\nPY ?= python3\nFLAGS = -q $(MORE)\nMORE = -x\nexport TOKEN = 1\n"
        "include more.mk\n"
        ".PHONY: test lint\n"
        "test: build ## run the tests\n\t$(PY) -m pytest $(FLAGS)\n\t@sh scripts/env.sh\n"
        "build:\n\ttrue\n"
        "lint:\n\truff check\n"
        "all: lint\n\t$(MAKE) test\n"
    ),
    "more.mk": "check: ; ./test.sh\n",
    "justfile": (
        "flags := '-q'\n\ntest: build\n    pytest {{flags}}\n\nbuild:\n    true\n\nlint:\n  x\n"
    ),
    "package.json": (
        '{"scripts": {"pretest": "tsc", "test": "npm run unit && jest", "unit": "node run.js",'
        ' "lint": "eslint ."}, "jest": {"a": 1}, "dependencies": {"a": "1"}}'
    ),
    "run.js": "x\n",
    "jest.config.js": "module.exports = {}\n",
    "web/package.json": '{"scripts": {"test": "vitest"}}',
    "web/vitest.config.ts": "x\n",
    "pyproject.toml": (
        '[project]\nname = "a"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n\n[tool.x]\n'
        '[tool.poe.tasks]\ntest = "x"\n[tool.hatch.envs.default.scripts]\ntest = "x"\n'
    ),
    "tox.ini": (
        "[tox]\nenvlist = py\n[testenv]\ncommands =\n  pytest\n  sh scripts/env.sh\n[flake8]\n"
    ),
    "setup.cfg": "[metadata]\nname = a\n[tool:pytest]\naddopts = -q\n",
    "noxfile.py": "x\n",
    "tests/test_a.py": "def test_a(): pass\n",
}
PYTEST = {"pyproject.toml [tool.pytest]", "setup.cfg [tool:pytest]"}
SCRIPT = {"test.sh", "scripts/env.sh", "tools/run.py"}
MAKE = {"make test", "make build", "make variable PY", "make variable FLAGS"}
MAKE |= {"make variable MORE", "make variable TOKEN", "scripts/env.sh", *PYTEST}
NPM = {"package.json scripts.pretest", "package.json scripts.test", "package.json scripts.unit"}
NPM |= {"run.js", "jest.config.js", "package.json jest"}


def reading(files: dict[str, str]) -> Read:
    return files.get


def names(command: str, files: dict[str, str] | None = None) -> set[str]:
    return {it.name for it in entries(command, reading(FILES if files is None else files))}


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("sh test.sh", SCRIPT),
        ("bash -euo pipefail ./test.sh --fast", SCRIPT),
        ("./test.sh", SCRIPT),
        ("FOO=1 exec timeout -k 5 60 env BAR=2 ./test.sh | tee log", SCRIPT),
        ("sh -c 'true && ./test.sh'", SCRIPT),
        ("sh < test.sh", SCRIPT),
        ("true; . ./scripts/env.sh", {"scripts/env.sh"}),
        ("cd scripts && ./env.sh", {"scripts/env.sh"}),
        ("(cd scripts; ./env.sh); ./env.sh", {"scripts/env.sh"}),
        ("sh scripts/deep.sh", {"scripts/deep.sh", "scripts/env.sh"}),
        ("python3.12 tools/run.py", {"tools/run.py", "scripts/env.sh"}),
        ("uv run --with x python tools/run.py", {"tools/run.py", "scripts/env.sh"}),
        ("uv run tools/run.py", {"tools/run.py", "scripts/env.sh"}),
        ("python -m tools.mod", {"tools/mod/__main__.py"}),
        ("make test", MAKE),
        ("make -j 4 test PY=python", MAKE),
        ("make", {"make check", "make variable TOKEN", *SCRIPT}),
        ("make build", {"make build", "make variable TOKEN"}),
        ("make check", {"make check", "make variable TOKEN", *SCRIPT}),
        (
            "make all",
            {"make all", "make lint", *MAKE},
        ),
        ("cd web && make -C .. lint", {"make lint", "make variable TOKEN"}),
        ("just test", {"just test", "just build", "just variable flags", *PYTEST}),
        ("npm test", NPM),
        ("npm run test -- --ci", NPM),
        ("yarn test", NPM),
        ("pnpm run unit", {"package.json scripts.unit", "run.js"}),
        ("npm --prefix web test", {"web/package.json scripts.test", "web/vitest.config.ts"}),
        ("npx --yes jest", {"jest.config.js", "package.json jest"}),
        ("run-s lint unit", {"package.json scripts.lint", "package.json scripts.unit", "run.js"}),
        ("pytest -q tests/test_a.py", PYTEST),
        ("poetry run coverage run -m pytest", PYTEST),
        ("tox -e py", {"tox.ini [tox]", "scripts/env.sh", *PYTEST}),
        ("nox -s tests", {"noxfile.py"}),
        ("hatch run test", {"pyproject.toml [tool.hatch.envs]"}),
        ("uv run poe test", {"pyproject.toml [tool.poe]"}),
        ("python -m unittest", set()),
        ("node --test", set()),
        ("go test ./...", set()),
        ("sh gone.sh", set()),
        ("", set()),
    ],
)
def test_a_command_resolves_to_these_entries(command, found):
    assert names(command) == found


def put(path: str, old: str, new: str) -> dict[str, str]:
    assert old in FILES[path]
    return {**FILES, path: FILES[path].replace(old, new)}


@pytest.mark.parametrize(
    ("command", "path", "old", "new", "said"),
    [
        ("sh test.sh", "test.sh", "set -e\n", "exit 0\n", ["edits test.sh"]),
        ("sh test.sh", "scripts/env.sh", "A=1", "A=2", ["edits scripts/env.sh"]),
        ("make test", "Makefile", "\t$(PY) -m pytest $(FLAGS)", "\ttrue", ["edits make test"]),
        ("make test", "Makefile", "MORE = -x", "MORE = --co", ["edits make variable MORE"]),
        ("make test", "Makefile", "PY ?= ", "SHELL = true\nPY ?= ", ["adds make variable SHELL"]),
        ("make test", "Makefile", "VERSION = 1", "VERSION = 2", []),
        ("make test", "Makefile", "\truff check\n", "\ttrue\n", []),
        ("make test", "Makefile", "VERSION", "new: test\n\ttrue\nVERSION", []),
        ("make test", "Makefile", "VERSION", ".IGNORE:\nVERSION", ["adds make .IGNORE"]),
        ("make test", "Makefile", ".PHONY: test", ".PHONY:", ["edits make test"]),
        ("just test", "justfile", "pytest {{flags}}", "true", ["edits just test"]),
        ("just test", "justfile", "  x\n", "  y\n", []),
        ("npm test", "package.json", "tsc", "true", ["edits package.json scripts.pretest"]),
        ("npm test", "package.json", "node run.js", ":", ["edits package.json scripts.unit"]),
        ("npm test", "package.json", '"a": 1', '"a": 2', ["edits package.json jest"]),
        ("npm test", "package.json", "eslint .", "true", []),
        ("npm test", "package.json", '"lint"', '"new": "x", "lint"', []),
        ("npm test", "package.json", '"a": "1"', '"b": "2"', []),
        ("pytest", "pyproject.toml", '"-q"', '"--co"', ["edits pyproject.toml [tool.pytest]"]),
        ("pytest", "pyproject.toml", 'addopts = "-q"', 'markers = ["a"]\naddopts = "-q"', []),
        ("pytest", "pyproject.toml", 'name = "a"', 'name = "b"', []),
        ("pytest", "setup.cfg", "-q", "--co", ["edits setup.cfg [tool:pytest]"]),
        ("pytest", "setup.cfg", "name = a", "name = b", []),
        ("pytest", "tox.ini", "[flake8]", "[pytest]\naddopts = --co", ["adds tox.ini [pytest]"]),
        ("pytest", "tests/test_a.py", "pass", "assert 0", []),
    ],
)
def test_what_is_edited_is_told_by_entry_and_not_by_file(command, path, old, new, said):
    after = put(path, old, new)

    found = [it.said for it in edits(command, reading(FILES), reading(after))]

    assert found == said


def test_a_file_that_comes_or_goes_is_an_edit():
    gone = {key: it for key, it in FILES.items() if key != "test.sh"}
    come = {**FILES, "pytest.ini": "[pytest]\naddopts = --co\n"}

    removed = [it.said for it in edits("sh test.sh", reading(FILES), reading(gone))]
    added = [it.said for it in edits("pytest", reading(FILES), reading(come))]

    assert removed == ["removes test.sh"]
    assert added == ["adds pytest.ini [pytest]"]


def test_a_file_that_comes_before_another_is_an_edit_and_the_other_is_none():
    come = {**FILES, "GNUmakefile": "test:\n\ttrue\n", "pytest.py": "raise SystemExit\n"}

    made = [it.said for it in edits("make test", reading(FILES), reading(come))]
    run = [it.said for it in edits("python -m pytest", reading(FILES), reading(come))]

    assert made == ["adds make test", "adds pytest.py"]
    assert run == ["adds pytest.py"]


def test_a_file_that_keeps_make_from_a_target_of_its_name_is_an_edit():
    phony = {**FILES, "test": "", "build": "", "build/": ""}

    found = edits("make test", reading(FILES), reading(phony))

    assert [it.said for it in found] == ["adds build", "adds build/"], "test is phony"
    assert laid(found, reading(FILES), reading(phony)).drop == ("build", "build/")
    assert edits("make test", reading(phony), reading(FILES)) == ()


def test_what_only_bases_wrapper_leads_to_is_an_edit_too():
    after = {
        **FILES,
        "test.sh": "exit 0\n",
        "scripts/env.sh": "exit 0\n",
        "Makefile": "test:\n\ttrue\n",
        "pytest.ini": "[pytest]\naddopts = --co\n",
    }

    sh = [it.said for it in edits("sh test.sh", reading(FILES), reading(after))]
    made = [it.said for it in edits("make test", reading(FILES), reading(after))]

    assert sh == ["edits scripts/env.sh", "edits test.sh"]
    assert {"edits make test", "adds pytest.ini [pytest]", "edits scripts/env.sh"} <= set(made)


HOSTILE = {
    "rules": "".join(
        f"$(A{it})x{it}: y{it}\nA{it} = $(A{it + 1}) $(A{it + 2})\n" for it in range(9000)
    ),
    "growth": "".join(f"A{it} = {f'$(A{it + 1})' * 200}\n" for it in range(9))
    + "test: $(A0)\n\t$(A0)",
    "spaces": "a" + " " * 200_000 + "b\ntest:\n\ttrue",
    "includes": "include Makefile Makefile\n" * 20,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_makefile_is_read_in_a_moment(name):
    begun = time.thread_time()

    entries("make test", reading({"Makefile": HOSTILE[name]}))

    assert time.thread_time() - begun < 3


def test_bases_version_is_laid_into_the_change_part_by_part():
    after = {
        **put("package.json", "tsc", "true"),
        "pyproject.toml": '[project]\nname = "b"\n\n[tool.pytest.ini_options]\naddopts = "--co"\n',
        "Makefile": "test:\n\ttrue\n",
        "pytest.ini": "[pytest]\n",
    }
    del after["test.sh"]
    base, change = reading(FILES), reading(after)
    found = [
        it
        for command in ("npm test", "make test", "sh test.sh")
        for it in edits(command, base, change)
    ]

    it = laid(found, base, change)

    assert {"Makefile", "test.sh"} <= set(it.take)
    assert it.drop == ("pytest.ini",)
    assert set(it.written) == {"package.json", "pyproject.toml"}
    assert '"pretest": "tsc"' in it.written["package.json"]
    assert it.written["pyproject.toml"].startswith('[project]\nname = "b"')
    assert 'addopts = "-q"' in it.written["pyproject.toml"]
    assert "--co" not in it.written["pyproject.toml"]


def test_a_table_that_cannot_be_put_in_by_its_lines_comes_with_bases_file():
    after = {**FILES, "pyproject.toml": '[tool]\npytest = {ini_options = {addopts = "--co"}}\n'}
    found = edits("pytest", reading(FILES), reading(after))

    assert laid(found, reading(FILES), reading(after)).written == {
        "pyproject.toml": FILES["pyproject.toml"]
    }


def test_scripts_that_call_each_other_without_end_are_followed_once():
    files = {
        "a.sh": "sh b.sh",
        "b.sh": "sh a.sh; make",
        "Makefile": "a: b\n\tmake b\nb: a\n\tsh a.sh",
    }

    assert names("sh a.sh", files) == {"a.sh", "b.sh", "make a", "make b"}


def test_no_repository_makes_more_entries_than_are_kept():
    files = {f"{it}.sh": f"sh {it + 1}.sh; sh {it + 2}.sh" for it in range(2000)}
    files["all.sh"] = "\n".join(f"sh {it}.sh" for it in range(2000))

    assert len(names("sh all.sh", files)) == MOST


# --- what follows from an edit --------------------------------------------------------------------

EDITS = edits("sh test.sh", reading(FILES), reading(put("test.sh", "set -e\n", "")))
PROOF = Proof(
    ran=("sh test.sh",),
    commit="c",
    tree="t",
    config_hash="h",
    sandbox="s",
    seconds=1.0,
    exit_code=0,
)


def passed(*ids: str, named: bool = True) -> Passed:
    return Passed("tests", replace(PROOF, tests_passed=ids if named else None))


@pytest.mark.parametrize(
    ("own", "base"),
    [
        (passed("a", "b"), passed("a", "b")),
        (passed("a", "b"), passed("a")),
        (passed("a"), passed(named=False)),
        (passed(named=False), passed(named=False)),
    ],
)
def test_a_pass_with_both_versions_is_a_pass_that_asks_a_human(own, base):
    result = agreed(own, base, EDITS)

    assert isinstance(result, Passed)
    assert (result.gate, result.asks) == ("tests", ("test.sh",))
    assert result.proof.tests_passed == own.proof.tests_passed
    assert "the change edits test.sh" in result.findings[0].issue


@pytest.mark.parametrize(
    ("own", "base", "said"),
    [
        (passed("a"), passed("a", "b"), "does not report that these pass: b"),
        (passed(named=False), passed("a"), "does not report that these pass: a"),
        (passed("a"), Failed("x", (Finding(Priority.P1_MAJOR, "b is red"),)), "b is red"),
        (passed(named=False), Failed("x", ()), "with base's it fails"),
    ],
)
def test_versions_that_disagree_fail_the_gate_and_both_are_told(own, base, said):
    result = agreed(own, base, EDITS)

    assert isinstance(result, Failed)
    assert result.gate == "tests"
    [finding] = result.findings
    assert "the change edits what this gate runs: test.sh" in finding.issue
    assert "With the change's version the command passes" in finding.issue
    assert said in finding.issue


def test_a_version_of_base_that_cannot_be_run_gives_no_judgement():
    result = agreed(passed("a"), Broken("x", "no room"), EDITS)

    assert isinstance(result, Broken)
    assert result.why.endswith("runs: test.sh; base's version of it could not judge: no room")


def test_a_human_is_asked_once_of_what_several_gates_run():
    said = question({"tests": EDITS, "differential": EDITS, "lint": ()})

    assert said == "the change edits what gate tests and differential runs: test.sh"
    assert question({"tests": ()}) == ""


# --- what never asks ------------------------------------------------------------------------------

commands = st.sampled_from(
    ["sh test.sh", "make test", "make", "npm test", "just test", "pytest", "tox", "npx jest"]
)
texts = st.text("abc\n\t:=$(){}[]'\"\\ ;&|#%.-/", max_size=80)


@given(commands, st.dictionaries(st.sampled_from(sorted(FILES)), texts))
def test_what_is_the_same_on_both_sides_is_never_an_edit(command, other):
    files = {**FILES, **other}

    assert edits(command, reading(files), reading(dict(files))) == ()


@given(commands, st.dictionaries(st.sampled_from(["a.py", "src/b.js", "docs/c.md"]), texts))
def test_a_change_of_other_files_is_never_an_edit(command, other):
    assert edits(command, reading(FILES), reading({**FILES, **other})) == ()


# --- odd wrappers -------------------------------------------------------------------------------

DEFINES = (
    "define RUN =\n\tsh a.sh\nendef\nexport OTHER\nOTHER = 1\n"
    "all: one.x two.x\n\t$(RUN)\n%.x:\n\tsh b.sh\n"
)
JUST = (
    "set shell := ['sh', '-c']\n  stray\nimport 'more.just'\nimport 'gone.just'\n"
    "export A := 'x'\n[private]\ntest: sub\n    pytest {{A}}\n"
)
SEVERAL = "a: b\na: c\nb: ; sh a.sh\nc: ; true\na: ; true\n"


@pytest.mark.parametrize(
    ("command", "files", "found"),
    [
        (
            "make all",
            {"Makefile": DEFINES, "a.sh": "1", "b.sh": "2"},
            {"a.sh", "b.sh", "make %.x", "make all", "make variable OTHER", "make variable RUN"},
        ),
        (
            "make",
            {"Makefile": ".EXPORT_ALL_VARIABLES:\nA = 1\nall: ; true\n"},
            {"make .EXPORT_ALL_VARIABLES", "make all", "make variable A"},
        ),
        (
            "make",
            {"Makefile": "export\nA = 1\nall: ; true\n"},
            {"make all", "make variable A"},
        ),
        (
            "make a",
            {"Makefile": SEVERAL, "a.sh": ""},
            {"a.sh", "make a", "make b", "make c"},
        ),
        (
            "make -Csub a; make --directory=sub a",
            {"sub/Makefile": "a: ; sh x.sh\n", "sub/x.sh": ""},
            {"make a", "sub/x.sh"},
        ),
        (
            "make a",
            {"Makefile": f"A = {'x' * 21_000}\na: ; echo $(A){'y' * 21_000}\n"},
            {"make a", "make variable A"},
        ),
        (
            "just test",
            {"justfile": JUST, "more.just": "import 'justfile'\nsub:\n    sh a.sh\n", "a.sh": ""},
            {"a.sh", "just settings", "just sub", "just test", "just variable A"},
        ),
        ("make test", {}, set()),
        ("just test", {}, set()),
        ("npm run", FILES, set()),
        ("npm exec jest", FILES, {"jest.config.js", "package.json jest"}),
        ("npm test && npm test", FILES, NPM),
        ("pytest -c own.ini", {"own.ini": "[pytest]\n"}, {"own.ini"}),
        ("eval 'sh test.sh'", FILES, SCRIPT),
        ("; ".join(["sh test.sh"] * 9_000), FILES, SCRIPT),
    ],
)
def test_an_odd_wrapper_is_followed_too(command, files, found):
    assert names(command, files) == found


@pytest.mark.parametrize(
    ("command", "before", "after", "said"),
    [
        (
            "npm test",
            '{"scripts": {"test": "jest"}}',
            FILES["package.json"],
            ["adds package.json jest", "adds package.json scripts.pretest"],
        ),
        (
            "npm test",
            FILES["package.json"],
            "[]",
            ["removes package.json jest", "removes package.json scripts.pretest"],
        ),
        (
            "npm test",
            FILES["package.json"],
            "{",
            ["removes package.json jest", "removes package.json scripts.pretest"],
        ),
    ],
)
def test_scripts_that_come_or_go_are_told_one_by_one(command, before, after, said):
    old, new = ({**FILES, "package.json": text} for text in (before, after))

    found = [it.said for it in edits(command, reading(old), reading(new))]

    assert found[:2] == said


def test_settings_that_cannot_be_read_and_values_of_several_lines_are_edits():
    several = "[tool:pytest]\n# c\naddopts =\n  -q\n  --co\n\n[metadata]\nname = a\n"
    new = {**FILES, "pyproject.toml": "a = [", "setup.cfg": several}

    found = [it.said for it in edits("pytest", reading(FILES), reading(new))]

    assert found == ["edits pyproject.toml [tool.pytest]", "edits setup.cfg [tool:pytest]"]


def test_a_file_that_both_sides_have_in_the_way_of_make_is_no_edit():
    change = {**FILES, "build": ""}
    base = {**change, "Makefile": FILES["Makefile"].replace("test: build", "test:")}

    found = [it.said for it in edits("make test", reading(base), reading(change))]

    assert found == ["edits make test"]


def test_settings_that_take_too_long_to_read_are_an_edit():
    new = {**FILES, "pyproject.toml": f"{'a.' * 60}b = 1\n"}

    found = [it.said for it in edits("pytest", reading(FILES), reading(new))]

    assert found == ["edits pyproject.toml [tool.pytest]"]


def test_only_a_pass_with_an_edit_asks_a_human():
    [edit] = edits("sh test.sh", reading(FILES), reading({**FILES, "test.sh": "exit 0\n"}))[:1]
    broken = Broken("tests", "no sandbox")

    assert asking(broken, (edit,)) == broken
    assert asking(passed(), ()) == passed()
    assert asking(passed(), (edit,)) == replace(passed(), asks=("test.sh",))


def test_a_base_version_that_waits_for_a_human_is_no_judgement():
    result = agreed(passed("a"), Waiting("tests", "Is that wanted?"), EDITS)

    assert isinstance(result, Broken)
    assert "could not judge: Is that wanted?" in result.why


def test_the_commands_behind_a_rule_are_its_recipes_and_shell_scripts() -> None:
    files = {"Makefile": "test: build\n\t./run.sh\n\nbuild:\n\tcc a.c\n", "run.sh": "pytest -q\n"}

    found = "\n".join(commands_behind("make test", files.get))

    assert "pytest -q" in found
    assert "cc a.c" in found
    assert commands_behind("pytest", files.get) == ()
