"""What `init` sees in a repository's files, and that what it writes always loads."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.adapters.config.detect import Detected, Seen, detect
from lockgate.adapters.config.formulas import GATE_FORMULAS
from lockgate.adapters.config.load import load_config
from lockgate.adapters.config.write import quoted, render_config
from lockgate.core.config.settings import HARNESSES, MergeMode
from lockgate.core.model.gates import CommandGate, DifferentialGate
from lockgate.errors import BadConfig

PYTEST = "pytest -q --junitxml=$OUT/junit.xml"
VITEST = "--reporter=default --reporter=junit --outputFile.junit=$OUT/junit.xml"
JEST = "--reporters=default --reporters=jest-junit"
NODE = (
    "--test-reporter=junit --test-reporter-destination=$OUT/junit.xml"
    " --test-reporter=spec --test-reporter-destination=stdout"
)
VENV = "python3 -m venv .venv && .venv/bin/pip install"
NO_TEST = 'echo "Error: no test specified" && exit 1'


def repository(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def package(**keys: object) -> str:
    return json.dumps(keys)


# files → test, typecheck, set-up
SEEN = [
    ({}, None, None, None),
    (
        {"uv.lock": "", "pyproject.toml": "[tool.pytest.ini_options]\n[tool.mypy]\nfiles=['src']"},
        f"uv run --no-sync {PYTEST}",
        "uv run --no-sync mypy",
        "uv sync",
    ),
    (
        {"poetry.lock": "", "pyproject.toml": "[tool.pyright]", "conftest.py": "", "src/a.py": ""},
        f"poetry run {PYTEST}",
        "poetry run pyright",
        "poetry install",
    ),
    (
        {"requirements.txt": "pytest==9", "mypy.ini": "", "src/a.py": ""},
        f".venv/bin/python -m {PYTEST}",
        ".venv/bin/python -m mypy src",
        f"{VENV} -r requirements.txt",
    ),
    (
        {"setup.py": "", "setup.cfg": "[mypy]\n", "tests/test_a.py": ""},
        ".venv/bin/python -m unittest discover -s tests",
        ".venv/bin/python -m mypy .",
        f"{VENV} -e .",
    ),
    (
        {"pyproject.toml": "[project.optional-dependencies]\ntest=['pytest']\ndev=[]"},
        f".venv/bin/python -m {PYTEST}",
        None,
        f"{VENV} -e '.[dev,test]'",
    ),
    ({"pyproject.toml": "not toml ["}, None, None, f"{VENV} -e ."),
    ({"pyproject.toml": "tool = 3"}, None, None, f"{VENV} -e ."),
    ({"tox.ini": "[pytest]"}, PYTEST, None, None),
    (
        {
            "package.json": package(scripts={"test": "vitest", "typecheck": "tsc"}),
            "package-lock.json": "",
        },
        f"npm test -- --run {VITEST}",
        "npm run typecheck",
        "npm ci",
    ),
    (
        {
            "package.json": package(devDependencies={"vitest": "1"}),
            "pnpm-lock.yaml": "",
            "tsconfig.json": "",
        },
        f"pnpm exec vitest run {VITEST}",
        "pnpm exec tsc --noEmit",
        "pnpm install --frozen-lockfile",
    ),
    (
        {
            "package.json": package(scripts={"test": NO_TEST}, dependencies={"jest": "1"}),
            "yarn.lock": "",
        },
        "yarn run jest",
        None,
        "yarn install --frozen-lockfile",
    ),
    ({"package.json": package(scripts={"test": NO_TEST})}, None, None, "npm install"),
    ({"package.json": package(scripts={"test": 7})}, None, None, "npm install"),
    ({"package.json": package(scripts=[1])}, None, None, "npm install"),
    ({"package.json": "[1]"}, None, None, None),
    ({"package.json": "{"}, None, None, None),
    ({"package.json": "[" * 100_000}, None, None, None),
    (
        {"go.mod": "module x", "go.sum": ""},
        "go test -json ./...",
        "go vet ./...",
        "go mod download",
    ),
    ({"Cargo.toml": ""}, "cargo test", "cargo check --all-targets", "cargo fetch"),
    ({"Makefile": "test: build\n\tx\ntypecheck:\n\ty\n"}, "make test", "make typecheck", None),
    ({"Makefile": "test := 1\nlint:\n"}, None, None, None),
    (
        {"requirements.txt": "flask", "Makefile": "test:\n"},
        "make test",
        None,
        f"{VENV} -r requirements.txt",
    ),
    (
        {"requirements.txt": "flask", "go.mod": "module x"},
        "go test -json ./...",
        "go vet ./...",
        "go mod download",
    ),
]


@pytest.mark.parametrize(("files", "test", "typecheck", "setup"), SEEN, ids=range(len(SEEN)))
def test_the_commands_are_read_from_the_files(tmp_path, files, test, typecheck, setup) -> None:
    root = repository(tmp_path / "repo", files)

    found = detect(root)

    assert (found.test and found.test.command) == test
    assert (found.typecheck and found.typecheck.command) == typecheck
    assert (found.setup and found.setup.command) == setup
    load_config(render_config(found), origin="what init wrote")


def test_what_was_seen_says_by_what_and_names_the_set_up_s_inputs(tmp_path) -> None:
    files = {"uv.lock": "", "pyproject.toml": "", "tests/conftest.py": "", "tox.ini": ""}

    found = detect(repository(tmp_path, files))

    assert found.test == Seen(f"uv run --no-sync {PYTEST}", "tests/conftest.py")
    assert found.inputs == ("uv.lock", "pyproject.toml")
    assert found.test_paths == ("tests/**",)


def test_a_directory_in_a_file_s_place_and_bytes_that_are_no_text_are_borne(tmp_path) -> None:
    (tmp_path / "package.json").mkdir()
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe\x00pytest")

    found = detect(tmp_path)

    assert found.test is not None
    assert found.test.by == "pyproject.toml"


def test_a_file_that_cannot_be_opened_counts_as_empty(tmp_path) -> None:
    (tmp_path / "Makefile").symlink_to(tmp_path / "Makefile")

    assert detect(tmp_path) == Detected()


def test_only_the_first_million_bytes_of_a_file_are_read(tmp_path) -> None:
    (tmp_path / "Makefile").write_text("#" * 1_000_000 + "\ntest:\n", encoding="utf-8")

    assert detect(tmp_path).test is None


def test_nothing_is_run(tmp_path) -> None:
    mark = tmp_path / "ran"
    files = {
        "setup.py": f"open({str(mark)!r}, 'w')",
        "conftest.py": f"open({str(mark)!r}, 'w')",
        "Makefile": f"X := $(shell touch {mark})\ntest:\n\ttouch {mark}\n",
        "package.json": package(scripts={"test": f"touch {mark}"}),
    }

    detect(repository(tmp_path / "repo", files))

    assert not mark.exists()


# --- writing ------------------------------------------------------------------------------------


def test_with_both_commands_the_formula_is_written_by_name() -> None:
    detected = Detected(test=Seen("pytest --junitxml=x", "x"), typecheck=Seen("mypy", "x"))

    settings = load_config(render_config(detected, base="trunk", agent="codex"), origin="w")

    assert settings.formula == "solo"
    assert (settings.project.base, settings.project.agent) == ("trunk", "codex")
    assert settings.merge.mode is MergeMode.MANUAL


@pytest.mark.parametrize(
    ("formula", "detected", "names"),
    [
        ("plain", Detected(), ["code_review"]),
        ("plain", Detected(test=Seen("t", "x")), ["tests", "code_review"]),
        ("solo", Detected(), ["code_review"]),
        ("solo", Detected(test=Seen("t", "x")), ["tests", "differential", "code_review"]),
        ("solo", Detected(typecheck=Seen("t", "x")), ["typecheck", "code_review"]),
        ("code-review", Detected(test=Seen("t", "x")), ["tests", "code_review"]),
        ("security-audit", Detected(), ["code_review", "human_approval"]),
        ("quick-review", Detected(test=Seen(" ", "x")), ["code_review"]),
        ("none", Detected(), []),
    ],
)
def test_a_gate_whose_command_was_not_found_is_left_out_and_named(formula, detected, names) -> None:
    text = render_config(detected, formula=formula)

    settings = load_config(text, origin="w")
    assert settings.formula == "none"
    assert [gate.name for gate in settings.gates] == names
    assert formula == "none" or f"# The formula {formula} without " in text


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (PYTEST, True),
        ("pytest --junit-xml $OUT/x.xml", True),
        ("go test -json ./...", True),
        ("gotestsum --junitfile $OUT/x.xml", True),
        (f"node --test {NODE}", True),
        (f"npx jest {JEST}", True),
        (f"vitest run {VITEST}", True),
        ("pytest -q", False),
        ("go test ./...", False),
        ("cargo test", False),
        ("make test", False),
        ("npm test", False),
        ("python -m unittest discover -s tests", False),
    ],
)
def test_solo_is_written_only_where_a_report_names_the_tests(command, names) -> None:
    text = render_config(Detected(test=Seen(command, "x"), typecheck=Seen("mypy", "x")))

    assert load_config(text, origin="w").formula == ("solo" if names else "plain")
    assert ("# Not solo: " in text) is not names


def test_a_formula_that_was_asked_for_is_written_without_a_word() -> None:
    detected = Detected(test=Seen("cargo test", "x"), typecheck=Seen("cargo check", "x"))

    solo, plain = (render_config(detected, formula=it) for it in ("solo", "plain"))

    assert load_config(solo, origin="w").formula == "solo"
    assert load_config(plain, origin="w").formula == "plain"
    assert "Not solo" not in solo + plain


def test_without_a_test_command_nothing_is_said_about_its_report() -> None:
    assert "Not solo" not in render_config(Detected())


@pytest.mark.parametrize(
    ("script", "installed", "tool", "command"),
    [
        ("node --test", {}, "", f"npm test -- {NODE}"),
        ("node --import=tsx --test --test-concurrency=1", {}, "", f"npm test -- {NODE}"),
        ("node --test tests/", {}, "", "npm test"),
        ("tsc && node --test", {}, "", "npm test"),
        ("vitest run", {}, "pnpm-lock.yaml", f"pnpm test {VITEST}"),
        ("vitest --run --coverage", {}, "yarn.lock", f"yarn test {VITEST}"),
        ("vitest src", {}, "", "npm test"),
        ("jest", {}, "", "npm test"),
        ("jest --ci", {"jest-junit": "1"}, "", f"JEST_JUNIT_OUTPUT_DIR=$OUT npm test -- {JEST}"),
        ("jest src", {"jest-junit": "1"}, "", "npm test"),
        ("mocha", {"jest-junit": "1"}, "", "npm test"),
    ],
)
def test_a_script_that_can_report_is_told_to(tmp_path, script, installed, tool, command) -> None:
    files = {"package.json": package(scripts={"test": script}, devDependencies=installed)}

    found = detect(repository(tmp_path, {**files, **({tool: ""} if tool else {})}))

    assert found.test == Seen(command, "scripts.test in package.json")


def test_jest_without_a_script_reports_where_it_can(tmp_path) -> None:
    installed = {"jest": "29", "jest-junit": "16"}

    found = detect(repository(tmp_path, {"package.json": package(devDependencies=installed)}))

    assert found.test is not None
    assert found.test.command == f"JEST_JUNIT_OUTPUT_DIR=$OUT npx --no-install jest {JEST}"


@pytest.mark.parametrize("wrong", [{"formula": "magic"}, {"agent": "hal"}])
def test_an_unknown_formula_or_agent_is_refused(wrong) -> None:
    with pytest.raises(BadConfig, match="the config was not written") as caught:
        render_config(Detected(), **wrong)

    assert "choose one of" in caught.value.fix


TEXTS = st.text(max_size=80)
SEEINGS = st.none() | st.builds(Seen, TEXTS, TEXTS)
LISTS = st.lists(TEXTS, max_size=3).map(tuple)
DETECTIONS = st.builds(
    Detected, test=SEEINGS, typecheck=SEEINGS, setup=SEEINGS, inputs=LISTS, test_paths=LISTS
)


@given(DETECTIONS, st.sampled_from(GATE_FORMULAS), st.sampled_from(HARNESSES))
def test_whatever_was_detected_the_config_loads_and_no_gate_runs_nothing(
    detected, formula, agent
) -> None:
    settings = load_config(render_config(detected, formula=formula, agent=agent), origin="w")

    runs = [it for it in settings.gates if isinstance(it, CommandGate | DifferentialGate)]
    assert all(it.command.strip() for it in runs)
    assert settings.project.agent == agent


@given(TEXTS)
def test_a_quoted_text_is_read_back_as_it_was(text) -> None:
    read = load_config(f"gates.formula = 'none'\ncommands.test = {quoted(text)}", origin="w")

    assert read.commands.test == text


@pytest.mark.parametrize("text", ['"', "\\", "\n", '"""', "\x7f", "\0", "💥", "a\r\nb", "\ud800"])
def test_a_text_that_could_break_toml_does_not(text) -> None:
    detected = Detected(test=Seen(text + "x", text), setup=Seen(text, text), inputs=(text,))

    load_config(render_config(detected), origin="w")
