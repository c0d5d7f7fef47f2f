"""Three projects of other people, from their source distributions: their own tests as a gate."""

import os
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from lockgate.adapters.sandbox import trouble
from tests.faces.shell import Shell

WHY_NOT = trouble()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(WHY_NOT is not None, reason=f"needs a sandbox: {WHY_NOT}"),
]
RUN = "-m pytest -q --tb=short -p no:cacheprovider --junitxml=$OUT/junit.xml"


@dataclass(frozen=True, slots=True)
class Sample:
    """A project, the tests that are run, and a mistake to make in one of its functions."""

    name: str
    version: str
    tests: str
    file: str
    right: str
    wrong: str
    own_venv: bool = False

    @property
    def command(self) -> str:
        python = ".venv/bin/python" if self.own_venv else sys.executable
        return f"{python} {RUN} {self.tests}"


SAMPLES = (
    Sample(
        "toolz",
        "1.2.0",
        "toolz/tests/test_itertoolz.py",
        "toolz/itertoolz.py",
        "    return tail(1, seq)[0]\n",
        "    return tail(2, seq)[0]\n",
    ),
    Sample(
        "idna",
        "3.20",
        "tests/test_idna.py",
        "idna/core.py",
        "def valid_label_length(label: bytes | str) -> bool:\n",
        "def valid_label_length(label: bytes | str) -> bool:\n    return True\n",
    ),
    Sample(
        "iniconfig",
        "2.3.1",
        "testing",
        "src/iniconfig/__init__.py",
        "        return None if lineno is None else lineno + 1\n",
        "        return None if lineno is None else lineno + 2\n",
        own_venv=True,
    ),
)


@pytest.fixture(scope="module", params=SAMPLES, ids=lambda it: it.name)
def sample(request: pytest.FixtureRequest) -> Sample:
    found: Sample = request.param
    return found


@pytest.fixture(scope="module")
def archive(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fetched(sample, tmp_path_factory.mktemp("fetched") / "archive")


@pytest.fixture
def project(sample: Sample, archive: Path, tmp_path: Path) -> Shell:
    """Its repository, with a configuration that asks its own tests."""
    shell = Shell(tmp_path / "shell")
    unpack(archive, tmp_path / "unpacked")
    (tmp_path / "unpacked" / f"{sample.name}-{sample.version}").rename(shell.repo)
    shell.git("init", "--quiet", "--initial-branch=main")
    shell.git("config", "user.name", "Test")
    shell.git("config", "user.email", "test@localhost")
    (shell.repo / ".lockgate").mkdir()
    (shell.repo / ".lockgate" / "config.toml").write_text(config(sample), encoding="utf-8")
    commit(shell, "Everything")
    shell.home.mkdir()  # so that a set-up is made once
    return shell


def fetched(sample: Sample, place: Path) -> Path:
    wanted = f"{sample.name}=={sample.version}"
    argv = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(place)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *argv, wanted],
        env={**os.environ, "HOME": str(place.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        pytest.skip(f"needs {wanted} from the package index: {said[-1] if said else ''}")
    return next(place.glob("*.tar.gz"))


def unpack(archive: Path, place: Path) -> None:
    """As ours, whoever packed it: git minds a repository that is somebody else's."""
    with tarfile.open(archive) as file:
        for member in file.getmembers():
            member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
        file.extractall(place)  # noqa: S202 - Python 3.11.2 has no filter, and these are pinned


def config(sample: Sample) -> str:
    install = "python3 -m venv .venv && .venv/bin/pip install --quiet pytest -e ."
    env = f'[env]\nsetup = "{install}"\ninputs = ["pyproject.toml"]\n' if sample.own_venv else ""
    shown = f'["{sys.prefix}", "{sys.base_prefix}"]'
    return (
        '[project]\nagent = "scripted"\n'
        f"{env}"
        f"[sandbox]\nread = {shown}\n"
        '[gates]\nformula = "none"\n'
        '[[gates.list]]\nname = "tests"\ntype = "command"\nattempts = 1\n'
        f'command = "{sample.command}"\n'
    )


def commit(shell: Shell, message: str) -> None:
    shell.git("add", "--all", "--force")
    shell.git("commit", "--quiet", "--message", message)


@dataclass(frozen=True, slots=True)
class Outside:
    """What the same command comes to for somebody who runs it by hand."""

    code: int
    failed: int
    places: frozenset[tuple[str, int]]


def by_hand(sample: Sample, shell: Shell, place: Path) -> Outside:
    tree = place / "by-hand"
    shell.git("clone", "--quiet", str(shell.repo), str(tree))
    if sample.own_venv:
        install = "python3 -m venv .venv && .venv/bin/pip install --quiet pytest -e ."
        subprocess.run(["sh", "-c", install], cwd=tree, check=True, capture_output=True)
    done = subprocess.run(
        ["sh", "-c", sample.command],
        cwd=tree,
        env={**shell.environment(), "OUT": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
    suite = ET.parse(place / "junit.xml").getroot().iter("testsuite")  # noqa: S314 - pytest's own
    failed = sum(int(it.get("failures", 0)) + int(it.get("errors", 0)) for it in suite)
    seen = re.findall(r"^(\S+\.py):(\d+): in \w+", done.stdout, re.MULTILINE)
    return Outside(done.returncode, failed, frozenset((file, int(line)) for file, line in seen))


def test_its_own_tests_as_a_gate_say_what_they_say_by_hand(
    sample: Sample, project: Shell, tmp_path: Path
) -> None:
    outside = by_hand(sample, project, tmp_path)

    answer = project.program("gate", "run", "--json")

    assert (answer.code, outside.code) == (0, 0), answer
    (gate,) = answer.facts["gates"]
    assert gate["tests"] > 0
    assert "bubblewrap" in gate["level"]


def test_a_function_broken_on_purpose_is_found_at_the_test_that_shows_it(
    sample: Sample, project: Shell, tmp_path: Path
) -> None:
    project.git("checkout", "--quiet", "-b", "broken")
    text = (project.repo / sample.file).read_text(encoding="utf-8")
    assert text.count(sample.right) == 1
    (project.repo / sample.file).write_text(text.replace(sample.right, sample.wrong), "utf-8")
    commit(project, "Break it")
    outside = by_hand(sample, project, tmp_path)

    answer = project.program("gate", "run", "--json")

    assert (answer.code, outside.code) == (1, 1), answer
    findings = answer.facts["gates"][0]["findings"]
    places = {(it["location"]["file"], it["location"]["line"]) for it in findings}
    assert len(findings) == outside.failed > 0
    assert places <= outside.places
    assert all(file.startswith(sample.tests.split("/")[0]) for file, _ in places)
