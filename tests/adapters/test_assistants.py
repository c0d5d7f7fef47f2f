"""Telling the assistants of a machine about `lockgate mcp`, with programs in their place."""

import json
from pathlib import Path

import pytest

from lockgate.adapters.assistants import ASSISTANTS, Registered, register, way_of

SAYS = '#!/bin/sh\necho "$0 $*" >> "{log}"\n{then}\n'


@pytest.fixture
def bin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "bin"
    made.mkdir()
    monkeypatch.setenv("PATH", f"{made}:/usr/bin:/bin")
    return made


def install(bin: Path, name: str, then: str = "") -> None:
    program = bin / name
    program.write_text(SAYS.format(log=bin / "log", then=then))
    program.chmod(0o755)


def told(bin: Path) -> tuple[Registered, ...]:
    config = bin.parent / "config"
    return register({"PATH": str(bin), "XDG_CONFIG_HOME": str(config)})


def test_each_that_is_installed_is_told_by_its_own_command(bin: Path) -> None:
    install(bin, "claude")
    install(bin, "gemini")

    assert [(it.assistant, it.problem) for it in told(bin)] == [("claude", ""), ("gemini", "")]
    said = (bin / "log").read_text().replace(f"{bin}/", "").splitlines()
    assert said == [way_of("claude"), way_of("gemini")]


def test_one_that_knows_the_server_is_no_problem_and_one_that_fails_says_why(bin: Path) -> None:
    install(bin, "claude", "echo 'MCP server lockgate already exists'; exit 1")
    install(bin, "codex", "echo 'no such file' >&2; exit 3")

    claude, codex = told(bin)

    assert claude.problem == ""
    assert codex.problem == "no such file"


def test_a_program_that_cannot_be_started_is_told(bin: Path) -> None:
    (bin / "codex").write_text("#!/no/such/interpreter\n")
    (bin / "codex").chmod(0o755)

    [found] = told(bin)

    assert found.problem


def test_what_else_is_in_opencodes_file_stays(bin: Path) -> None:
    install(bin, "opencode")
    file = bin.parent / "config" / "opencode" / "opencode.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"theme": "dark", "mcp": {"other": {"type": "local"}}}')

    assert [it.problem for it in told(bin)] == [""]
    assert [it.problem for it in told(bin)] == [""]

    found = json.loads(file.read_text())
    assert found["theme"] == "dark"
    assert sorted(found["mcp"]) == ["lockgate", "other"]
    assert {"mcp": {"lockgate": found["mcp"]["lockgate"]}} == json.loads(way_of("opencode"))


def test_opencodes_file_is_made_where_there_is_none(bin: Path) -> None:
    install(bin, "opencode")

    assert [it.problem for it in told(bin)] == [""]
    made = json.loads((bin.parent / "config" / "opencode" / "opencode.json").read_text())
    assert list(made["mcp"]) == ["lockgate"]


@pytest.mark.parametrize(
    ("text", "why"), [("[]", "no JSON object"), ("{", "Expecting"), ('{"mcp": 3}', "no table")]
)
def test_a_file_that_is_not_understood_is_left_as_it_is(bin: Path, text: str, why: str) -> None:
    install(bin, "opencode")
    file = bin.parent / "config" / "opencode" / "opencode.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)

    [found] = told(bin)

    assert why in found.problem
    assert file.read_text() == text


def test_where_none_is_installed_nobody_is_told(bin: Path) -> None:
    assert told(bin) == ()
    assert set(ASSISTANTS) == {"claude", "codex", "gemini", "opencode"}
