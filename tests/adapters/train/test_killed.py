"""A landing that is killed at every git step: the branch is where it was or has landed, and the
next landing ends what the last one began.

A `git` of ours stands in front of the real one and kills the landing process before or after its
n-th call; the call itself goes on, as it does when an orchestrator dies.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lockgate.adapters.train import GitYard
from lockgate.ports.train import Arrived, InTheWay
from tests.adapters.train.sidings import Siding, told
from tests.adapters.workshop import asked, git

MOST_STEPS = 12
KILLER = """\
#!/bin/sh
n=$(ls "$STEPS" | wc -l)
while ! mkdir "$STEPS/$n" 2>/dev/null; do n=$((n + 1)); done
[ "$n$WHEN" = "${AT}before" ] && kill -9 "$(cat "$STEPS.pid")" && exit 1
"$REAL" "$@"
code=$?
[ "$n$WHEN" = "${AT}after" ] && kill -9 "$(cat "$STEPS.pid")"
exit $code
"""
LANDS = """\
import os, sys
from pathlib import Path
from lockgate.adapters.repository import GitRepository
from lockgate.adapters.train import GitYard
from lockgate.ports.train import Target
root, home, remote, expected, commit = sys.argv[1:]
target = Target(project=GitRepository().project_at(Path(root)), branch="main", remote=remote)
Path(os.environ["STEPS"] + ".pid").write_text(str(os.getpid()))
os.environ["PATH"] = os.environ["KILLER"] + ":" + os.environ["PATH"]
GitYard(Path(home)).land(target, expected, commit)
"""


@pytest.fixture
def siding(tmp_path: Path) -> Siding:
    return Siding.at(tmp_path)


def _shown_nowhere(siding: Siding) -> None:
    assert told(siding.root, "branch", "--show-current") == "desk"


def _shown(siding: Siding) -> None:
    git(siding.root, "checkout", "--quiet", "main")


def _remote(siding: Siding) -> None:
    hub = siding.root.with_name("hub.git")
    git(siding.root, "clone", "--quiet", "--bare", str(siding.root), str(hub))
    git(siding.root, "remote", "add", "hub", str(hub))
    siding.remote = "hub"


@pytest.mark.parametrize("where", [_shown_nowhere, _shown, _remote])
@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
def test_a_landing_that_was_killed_is_ended_by_the_next(siding, tmp_path, where, when) -> None:
    where(siding)
    killed = 0
    for step in range(MOST_STEPS):
        was = siding.yard.tip(siding.target).commit
        built = siding.built(siding.change(f"t{step}", _changed(step), on=was))
        code = _land_and_die(siding, tmp_path / f"steps {step}", (was, built.commit), step, when)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1

        _wait_for_gits(tmp_path / f"steps {step}")
        seen = GitYard(siding.home).tip(siding.target).commit
        assert seen in {was, built.commit}
        assert GitYard(siding.home).land(siding.target, was, built.commit) == Arrived()
        assert GitYard(siding.home).has(siding.target, built.commit)
        assert siding.status() == ""
        assert not list((siding.root / ".git").rglob("*.lock"))

    assert killed >= 3
    assert asked(siding.root, "fsck", "--strict", "--connectivity-only") == ""


def test_a_git_that_was_killed_while_it_wrote_files_is_said_and_gone_over(siding) -> None:
    _shown(siding)
    siding.user_commits({".gitattributes": "*.last filter=deadly\n"})
    was = siding.main
    built = siding.built(siding.change("t1", {"a.txt": "landed\n", "z.last": "z\n"}))
    git(siding.root, "config", "filter.deadly.smudge", "kill -9 $PPID")
    git(siding.root, "config", "filter.deadly.required", "true")

    found = siding.yard.land(siding.target, was, built.commit)

    assert isinstance(found, InTheWay)
    assert "index.lock" in found.why
    assert siding.main == was
    assert (siding.root / "a.txt").read_text() == "landed\n"
    git(siding.root, "config", "--remove-section", "filter.deadly")
    (siding.root / ".git" / "index.lock").unlink()
    assert siding.yard.land(siding.target, was, built.commit) == Arrived()
    assert (siding.main, siding.status()) == (built.commit, "")


def _changed(step: int) -> dict[str, str | None]:
    return {"a.txt": f"one\ntwo\n{step}\n", f"new/{step}.txt": "c\n"}


def _land_and_die(siding: Siding, steps: Path, move: tuple[str, str], at: int, when: str) -> int:
    killer = steps.with_name(f"{steps.name} bin")
    killer.mkdir()
    (killer / "git").write_text(KILLER)
    (killer / "git").chmod(0o755)
    steps.mkdir()
    real = shutil.which("git")
    assert real is not None
    told = {"STEPS": str(steps), "AT": str(at), "WHEN": when, "REAL": real, "KILLER": str(killer)}
    argv = (sys.executable, "-c", LANDS, str(siding.root), str(siding.home), siding.remote, *move)
    return subprocess.run(argv, env=dict(os.environ) | told, check=False).returncode


def _wait_for_gits(steps: Path) -> None:
    """Those that outlived the landing: each has this in its environment."""
    mark = f"STEPS={steps}".encode()
    while any(mark in _environment(it) for it in Path("/proc").glob("[0-9]*")):
        os.sched_yield()


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""
