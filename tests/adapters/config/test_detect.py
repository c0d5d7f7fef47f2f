"""What `init` reads of a repository's base commit, and that what it writes always loads."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.adapters.config import detect
from lockgate.adapters.config.detect import commands, look_at
from lockgate.adapters.config.load import load_config
from lockgate.adapters.config.schema import GATE_FORMULAS
from lockgate.adapters.config.write import quoted, render_config
from lockgate.core.config.settings import HARNESSES, MergeMode, ServiceKind
from lockgate.core.discovery.found import Beside, Needed, Package, Plan, Said, Seen, remarks
from lockgate.core.model.gates import CommandGate, DifferentialGate
from lockgate.errors import BadConfig

PYTEST = "pytest -q --junitxml=$OUT/junit.xml"


def git(root: Path, *argv: str) -> str:
    who = ("-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *who, *argv], cwd=root, capture_output=True, check=True)
    return done.stdout.decode().strip()


def repository(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(root, "init", "--quiet")
    return root


def committed(root: Path) -> str:
    git(root, "add", "--all", "--force")
    git(root, "commit", "--quiet", "--message", "Files")
    return git(root, "rev-parse", "HEAD")


WORKFLOW = """
on: push
jobs:
  lint: {steps: [{run: ruff check}]}
  test:
    defaults: {run: {working-directory: ./app}}
    steps:
      - uses: actions/checkout@v4
      - run: pytest tests
      - {run: "make", working-directory: other/}
  deploy: {steps: [{run: ./deploy test}]}
"""


def test_the_base_commit_is_read_and_not_what_lies_about(tmp_path) -> None:
    files = {
        "pyproject.toml": "[project]\n",
        "src/x.py": "secret",
        ".github/workflows/ci.yml": WORKFLOW,
        "näme/setup.py": "ä",
    }
    commit = committed(repository(tmp_path, files))
    git(tmp_path, "tag", "v1.2.3")
    (tmp_path / "pyproject.toml").write_text("edited", encoding="utf-8")
    (tmp_path / "tox.ini").write_text("new", encoding="utf-8")

    found = look_at(tmp_path, commit)

    assert found.paths == frozenset(files)
    assert dict(found.texts) == {"pyproject.toml": "[project]\n", "näme/setup.py": "ä"}
    assert [it.command for it in found.said] == ["pytest tests", "make", "ruff check"]
    assert found.version == "1.2.3"
    assert "make" in found.tools


def test_without_a_commit_what_lies_there_is_read(tmp_path) -> None:
    repository(tmp_path, {"Makefile": "test:\n", ".gitignore": "out", "out/setup.py": ""})
    (tmp_path / "tox.ini").symlink_to(tmp_path / "tox.ini")

    found = look_at(tmp_path, None)

    assert found.paths == {"Makefile", ".gitignore"}
    assert found.texts["Makefile"] == "test:\n"
    assert found.version == ""


def test_bytes_that_are_no_text_are_borne_and_only_a_million_of_them_are_read(tmp_path) -> None:
    repository(tmp_path, {})
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe\x00pytest")
    (tmp_path / "Makefile").write_text("#" * 1_000_000 + "\ntest:\n", encoding="utf-8")
    (tmp_path / "setup.py").write_text("after", encoding="utf-8")

    for found in (look_at(tmp_path, committed(tmp_path)), look_at(tmp_path, None)):
        assert found.texts["pyproject.toml"].endswith("pytest")
        assert len(found.texts["Makefile"]) == 1_000_000
        assert found.texts["setup.py"] == "after"


def test_submodules_and_pointers_of_lfs_are_remarked_upon(tmp_path) -> None:
    repository(tmp_path / "r", {".gitattributes": "*.bin filter=lfs\n", "a": ""})
    commit = committed(tmp_path / "r")
    entry = f"160000,{commit},vendor/x"
    git(tmp_path / "r", "update-index", "--add", "--cacheinfo", entry)
    git(tmp_path / "r", "commit", "--quiet", "--message", "Submodule")

    found = look_at(tmp_path / "r", git(tmp_path / "r", "rev-parse", "HEAD"))

    assert found.modules == ("vendor/x",)
    assert len(remarks(found)) == 2


def test_nothing_is_run(tmp_path) -> None:
    mark = tmp_path / "ran"
    files = {
        "setup.py": f"open({str(mark)!r}, 'w')",
        "conftest.py": f"open({str(mark)!r}, 'w')",
        "Makefile": f"X := $(shell touch {mark})\ntest:\n\ttouch {mark}\n",
        "noxfile.py": f"open({str(mark)!r}, 'w')",
    }
    root = repository(tmp_path / "repo", files)

    look_at(root, committed(root))

    assert not mark.exists()


def test_definitions_of_three_build_servers_are_read() -> None:
    texts = {
        ".gitlab-ci.yml": "stages: [a]\nunit: {script: [pytest, 3]}\nimage: {script: no}\nx: 1\n",
        ".travis.yml": "script: tox\n",
        ".github/workflows/tests.yml": "jobs: {a: {steps: [{run: nox}, 3]}, b: {steps: 4}, c: 5}\n",
        ".github/workflows/release.yml": "jobs: {a: {steps: [{run: twine}]}}\n",
        ".github/workflows/bad.yml": "a: [",
        ".github/workflows/long.yml": "#" * (detect.MOST_CHARACTERS + 1),
        "other.yml": "script: x\n",
    }

    assert commands(texts) == (
        Said("tox", ".travis.yml"),
        Said("nox", ".github/workflows/tests.yml"),
        Said("pytest", ".gitlab-ci.yml"),
    )


# --- writing ------------------------------------------------------------------------------------


def plan_of(**fields: object) -> Plan:
    return Plan((Package(**fields),))  # type: ignore[arg-type]  # a test's own


def test_with_both_commands_the_formula_is_written_by_name() -> None:
    plan = plan_of(test=Seen("pytest --junitxml=x", "x"), typecheck=Seen("mypy", "x"))

    settings = load_config(render_config(plan, base="trunk", agent="codex"), origin="w")

    assert settings.formula == "solo"
    assert (settings.project.base, settings.project.agent) == ("trunk", "codex")
    assert settings.merge.mode is MergeMode.MANUAL


@pytest.mark.parametrize(
    ("formula", "detected", "names"),
    [
        ("plain", plan_of(), ["code_review"]),
        ("plain", plan_of(test=Seen("t", "x")), ["tests", "code_review"]),
        ("solo", plan_of(), ["code_review"]),
        ("solo", plan_of(test=Seen("t", "x")), ["tests", "differential", "code_review"]),
        ("solo", plan_of(typecheck=Seen("t", "x")), ["typecheck", "code_review"]),
        ("code-review", plan_of(test=Seen("t", "x")), ["tests", "code_review"]),
        ("security-audit", plan_of(), ["code_review", "human_approval"]),
        ("quick-review", plan_of(test=Seen(" ", "x")), ["code_review"]),
        ("none", plan_of(), []),
    ],
)
def test_a_gate_whose_command_was_not_found_is_left_out_and_named(formula, detected, names) -> None:
    text = render_config(detected, formula=formula)

    settings = load_config(text, origin="w")
    assert settings.formula == formula
    assert [gate.name for gate in settings.gates] == names
    assert formula == "none" or "  # no command for these" in text


@pytest.mark.parametrize(("command", "names"), [(PYTEST, True), ("cargo test", False)])
def test_solo_is_written_only_where_a_report_names_the_tests(command, names) -> None:
    text = render_config(plan_of(test=Seen(command, "x"), typecheck=Seen("mypy", "x")))

    assert load_config(text, origin="w").formula == ("solo" if names else "plain")
    assert ("# Not solo: " in text) is not names


def test_a_formula_that_was_asked_for_is_written_without_a_word() -> None:
    plan = plan_of(test=Seen("cargo test", "x"), typecheck=Seen("cargo check", "x"))

    solo, plain = (render_config(plan, formula=it) for it in ("solo", "plain"))

    assert load_config(solo, origin="w").formula == "solo"
    assert load_config(plain, origin="w").formula == "plain"
    assert "Not solo" not in solo + plain


def test_without_a_test_command_nothing_is_said_about_its_report() -> None:
    assert "Not solo" not in render_config(plan_of())


def test_each_package_of_a_monorepo_has_its_own_gates_and_paths() -> None:
    api = Package(
        path="services/api",
        name="api",
        setup=Seen("make deps", "x"),
        inputs=("services/api/a.lock",),
        test=Seen("make test", "x"),
        typecheck=Seen("make types", "x"),
        needs=("libs/shared",),
        notes=("something was\nleft out",),
    )
    top = Package(name="top", test=Seen("make all", "x"))

    text = render_config(Plan((top, api, Package(path="red", name="red"))))

    settings = load_config(text, origin="w")
    assert [(it.name, it.place.paths) for it in settings.gates] == [
        ("tests", ()),
        ("tests-api", ("services/api/**", "libs/shared/**")),
        ("typecheck-api", ("services/api/**", "libs/shared/**")),
        ("code_review", ()),
    ]
    assert settings.env.setup == "cd services/api && make deps"
    assert [it.command for it in settings.gates if isinstance(it, CommandGate)][1] == (
        "cd services/api && make test"
    )
    assert "# something was?left out" in text


def test_another_formula_gives_a_monorepo_its_reviews_and_humans() -> None:
    plan = Plan((Package(path="a", name="a", test=Seen("t", "x")),))

    settings = load_config(render_config(plan, formula="security-audit"), origin="w")

    assert [it.name for it in settings.gates] == ["tests-a", "code_review", "human_approval"]


@pytest.mark.parametrize("wrong", [{"formula": "magic"}, {"agent": "hal"}])
def test_an_unknown_formula_or_agent_is_refused(wrong) -> None:
    with pytest.raises(BadConfig, match="the config was not written") as caught:
        render_config(plan_of(), **wrong)

    assert "choose one of" in caught.value.fix


TEXTS = st.text(max_size=80)
SEEINGS = st.none() | st.builds(Seen, TEXTS, TEXTS)
LISTS = st.lists(TEXTS, max_size=3).map(tuple)
PACKAGES = st.builds(
    Package,
    path=st.sampled_from(["", "a", "ü ber/b"]),
    name=st.just("a"),
    test=SEEINGS,
    typecheck=SEEINGS,
    setup=SEEINGS,
    inputs=LISTS,
    notes=LISTS,
)
PLANS = PACKAGES.map(lambda it: Plan((it,)))


@given(PLANS, st.sampled_from(GATE_FORMULAS), st.sampled_from(HARNESSES))
def test_whatever_was_detected_the_config_loads_and_no_gate_runs_nothing(
    plan, formula, agent
) -> None:
    settings = load_config(render_config(plan, formula=formula, agent=agent), origin="w")

    runs = [it for it in settings.gates if isinstance(it, CommandGate | DifferentialGate)]
    assert all(it.command.strip() for it in runs)
    assert settings.project.agent == agent


@given(TEXTS)
def test_a_quoted_text_is_read_back_as_it_was(text) -> None:
    read = load_config(f"gates.formula = 'none'\ncommands.test = {quoted(text)}", origin="w")

    assert read.commands.test == text


@pytest.mark.parametrize("text", ['"', "\\", "\n", '"""', "\x7f", "\0", "💥", "a\r\nb", "\ud800"])
def test_a_text_that_could_break_toml_does_not(text) -> None:
    plan = plan_of(test=Seen(text + "x", text), setup=Seen(text, text), inputs=(text,))

    load_config(render_config(plan), origin="w")


SERVED = """
env: {LEVEL: top}
jobs:
  test:
    env: {DATABASE_URL: "postgres://localhost", N: 3}
    services:
      db: {image: "postgres:16"}
      cache: {image: redis}
      odd: 3
    steps: [{run: pytest, env: {EXTRA: "redis://x"}}, odd]
  lint: {steps: 3}
"""
GITLAB = """
services: [{name: "mysql:8"}]
variables: {A: b}
test: {script: [pytest], services: ["redis:7"]}
"""
COMPOSED = "services: {web: {build: .}, db: {image: postgres}}\n"


def test_what_ci_and_compose_files_start_beside_the_tests_is_found(tmp_path) -> None:
    repository(
        tmp_path,
        {
            ".github/workflows/ci.yml": SERVED,
            ".gitlab-ci.yml": GITLAB,
            "compose.yaml": COMPOSED,
            "deep/compose.yaml": COMPOSED,
        },
    )

    found = look_at(tmp_path, None).beside

    variables = (("LEVEL", "top"), ("DATABASE_URL", "postgres://localhost"))
    github = (*variables, ("EXTRA", "redis://x"))
    assert found == (
        Beside("postgres:16", ".github/workflows/ci.yml", github),
        Beside("redis", ".github/workflows/ci.yml", github),
        Beside("mysql:8", ".gitlab-ci.yml", (("A", "b"),)),
        Beside("redis:7", ".gitlab-ci.yml", (("A", "b"),)),
        Beside("postgres", "compose.yaml"),
    )


@pytest.mark.parametrize("installed", [True, False])
def test_a_service_is_written_and_one_that_is_not_installed_only_as_a_comment(installed) -> None:
    env = (("TEST_URL", 'postgresql+psycopg://$PGHOST/"'),)
    service = Needed(ServiceKind.POSTGRES, "ci.yml", env, installed=installed)

    text = render_config(Plan((Package(),), (service,)))

    known = load_config(text, origin="a test").services
    assert [it.kind for it in known] == ([ServiceKind.POSTGRES] if installed else [])
    assert [it.env for it in known] == ([env] if installed else [])
    assert ("# Not installed here: apt-get install postgresql" in text) is not installed
