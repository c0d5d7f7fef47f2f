"""An agent that writes down what it was trusted with: nothing of that is kept, judged or landed."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockgate.core.model.secrets import Secret, forms_of
from lockgate.core.model.task import Status
from tests.e2e.orchestra import (
    COMPLETE,
    CONFIG,
    REVIEWER,
    Orchestra,
    hands_off,
    worker,
    writes,
)

SECRET = Secret("API_KEY", "s3cr3t/Value+for=Tests-01")
LEAKING = CONFIG.replace('"grep -q good answer.txt"', '"cat .env; grep -q good answer.txt"')
VALUE = "$(cut -d= -f2- .env)"
LEAKS = (
    f'{{ shell = "echo {VALUE} > leak.txt; echo {VALUE} | base64 > leak.b64" }}',
    '{ shell = "cat .env; cat .env >&2; git add -A; git commit -qm \\"with $(cat .env)\\"" }',
    f'{{ shell = "lockgate checkpoint --summary {VALUE}" }}',
    f"{{ shell = \"printf '## Handoff\\\\n\\\\nDONE: the key is %s\\\\n' {VALUE} >> TASK.md\" }}",
)
MENDED = ('{ shell = "rm -f leak.txt leak.b64" }', writes("good"), hands_off("without it"))
SCRIPTS = {
    "leaks": worker(*LEAKS, COMPLETE) + worker(*MENDED, COMPLETE) + REVIEWER,
    "prints": worker('{ shell = "cat .env" }', writes("bad"), hands_off("x"), COMPLETE)
    + worker(*MENDED, COMPLETE)
    + REVIEWER,
}


@pytest.fixture
def orchestra(tmp_path: Path) -> Iterator[Orchestra]:
    it = Orchestra(tmp_path, LEAKING + '[env]\ncopy = [".env"]\n', SCRIPTS)
    (it.root / ".env").write_text(f"{SECRET.name}={SECRET.value}\n")
    (it.root / ".git" / "info" / "exclude").write_text(".env\n")
    yield it
    it.close()


def _stored(it: Orchestra) -> Iterator[tuple[str, bytes]]:
    """All that Lockgate keeps: not the agents' own clones and HOMEs, but every object of git's."""
    own = (it.home / "workspaces", it.home / "homes")
    for file in it.home.rglob("*"):
        if file.is_file() and not any(it in file.parents for it in own):
            yield str(file), file.read_bytes()
    everything = ("cat-file", "--batch", "--batch-all-objects", "--unordered")
    for git_dir in (*it.home.glob("repos/*/*.git"), it.root / ".git"):
        asked = ("git", f"--git-dir={git_dir}", *everything)
        yield str(git_dir), subprocess.run(asked, capture_output=True, check=True).stdout


def test_a_secret_that_an_agent_writes_down_goes_back_to_it_and_is_kept_nowhere(orchestra) -> None:
    ids = [orchestra.create(name) for name in SCRIPTS]
    orchestra.up()

    for id in ids:
        orchestra.until_status(id, Status.REVIEWING, Status.STUCK)
        orchestra.until(lambda id=id: orchestra.settled(id))
    orchestra.down()

    story = orchestra.story()
    assert [orchestra.task(id).status for id in ids] == [Status.REVIEWING] * 2, story
    first = orchestra.task(ids[0]).history[0].feedback
    assert first is not None
    assert first.gate_name == "change-check"
    assert {it.location.file for it in first.findings if it.location} == {"leak.txt", "leak.b64"}
    logs = b"".join(it.read_bytes() for it in orchestra.home.glob("sessions/*/std*.log"))
    assert b"[secret API_KEY]" in logs
    checkpoints = [it.read_text() for it in orchestra.home.glob("tasks/*/checkpoints/*.json")]
    assert any("[secret API_KEY]" in it for it in checkpoints)
    forms = forms_of(SECRET)
    found = [where for where, data in _stored(orchestra) if any(it in data for it in forms)]
    assert found == []
