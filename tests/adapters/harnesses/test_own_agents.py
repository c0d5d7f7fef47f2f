"""Files as agents: what is copied, what can be run, what an agent's program is given."""

import os
import re
import shutil
import stat
from pathlib import Path

import pytest

from lockgate.adapters.harnesses import Registry, own_agents
from lockgate.core.config.settings import Settings
from lockgate.core.model.agents import Job
from lockgate.core.model.task import Role
from lockgate.errors import Refused

NONE = Settings(formula="none", gates=())
JOB = Job(prompt="go", role=Role.WORKER, task="t", session="s1", environ={"MY_KEY": "sesame"})
PROMPT = "/home/agent/.lockgate-prompt.md"


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(search=os.defpath, copies=tmp_path / "agents")


def written(tmp_path: Path, content: str | bytes = "#!/bin/sh\necho hello\n") -> Path:
    file = tmp_path / "agent.sh"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_a_file_is_copied_for_its_owner_alone_under_its_digest(registry, tmp_path) -> None:
    agent = registry.keep(written(tmp_path))

    [copy] = registry.copies.iterdir()
    assert agent == f"agent.sh@{copy.name}"
    assert copy.read_text() == "#!/bin/sh\necho hello\n"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(registry.copies.stat().st_mode) == 0o700


def test_the_same_bytes_are_copied_once(registry, tmp_path) -> None:
    assert registry.keep(written(tmp_path)) == registry.keep(written(tmp_path))
    assert len(list(registry.copies.iterdir())) == 1


def test_the_copy_is_started_with_the_prompt_and_without_variables(registry, tmp_path) -> None:
    agent = registry.keep(written(tmp_path))
    (tmp_path / "agent.sh").write_text("#!/bin/sh\nexit 1\n")

    launch = registry.launch(agent, NONE, JOB)

    assert launch.argv == ("/bin/sh", "/home/agent/.lockgate-agent/agent.sh", PROMPT)
    assert launch.programs == {".lockgate-agent/agent.sh": "#!/bin/sh\necho hello\n"}
    assert launch.files == {".lockgate-prompt.md": "go"}
    assert launch.env == {}
    assert not registry.can_resume(agent, NONE)


def test_a_native_program_keeps_its_bytes(registry, tmp_path) -> None:
    content = Path(shutil.which("true") or "/bin/true").read_bytes()
    agent = registry.keep(written(tmp_path, content))

    launch = registry.launch(agent, NONE, JOB)

    assert launch.argv == ("/home/agent/.lockgate-agent/agent.sh", PROMPT)
    [text] = launch.programs.values()
    assert text.encode("utf-8", "surrogateescape") == content


@pytest.mark.parametrize("damage", [lambda it: it.unlink(), lambda it: it.write_text("other")])
def test_a_copy_that_is_gone_or_changed_is_not_run(registry, tmp_path, damage) -> None:
    agent = registry.keep(written(tmp_path))
    damage(next(registry.copies.iterdir()))

    assert re.search("create the task again", registry.missing(agent, NONE) or "")


def test_a_damaged_copy_is_made_again_from_the_file(registry, tmp_path) -> None:
    agent = registry.keep(written(tmp_path))
    next(registry.copies.iterdir()).write_text("other")

    assert registry.keep(written(tmp_path)) == agent
    assert registry.missing(agent, NONE) is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("echo hello\n", "does not begin with a #! line"),
        ("", "does not begin with a #! line"),
        ("#!/usr/bin/env no-such-program\n", "no program on PATH"),
        ("#!/nowhere/sh\n", "no program on PATH"),
        ("#!\n", "no program on PATH"),
    ],
)
def test_a_file_that_nothing_can_run_is_refused_and_not_copied(
    registry, tmp_path, content, why
) -> None:
    with pytest.raises(Refused, match=why):
        registry.keep(written(tmp_path, content))

    assert not registry.copies.exists()


def test_an_interpreter_off_the_path_is_refused_for_it_would_be_shown(registry, tmp_path) -> None:
    """Else a repository's file could have any directory with a `bin` in it shown to itself."""
    private = tmp_path / "private" / "bin" / "sh"
    private.parent.mkdir(parents=True)
    shutil.copy("/bin/sh", private)

    with pytest.raises(Refused, match="no program on PATH"):
        registry.keep(written(tmp_path, f"#!{private}\n"))

    usual = Registry(search=f"{private.parent}:{os.defpath}", copies=registry.copies)
    agent = usual.keep(written(tmp_path, f"#!{private}\n"))
    assert usual.paths(agent, NONE) == (str(tmp_path / "private"),)


def test_what_is_no_regular_file_is_refused_at_once(registry, tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for name, why in (("pipe", "regular file"), ("", "regular file"), ("none", "No such file")):
        with pytest.raises(Refused, match=why):
            registry.keep(tmp_path / name)


def test_a_file_that_is_too_large_is_refused(registry, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(own_agents, "LARGEST", 10)

    with pytest.raises(Refused, match="larger than"):
        registry.keep(written(tmp_path))
