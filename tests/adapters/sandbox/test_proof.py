"""A sandbox is believed only when its inside has answered, and its programs are root's."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lockgate.adapters.run import Finished
from lockgate.adapters.sandbox import Box, boxed, run_boxed, trouble
from lockgate.adapters.sandbox.proof import Proof, namespace_of
from lockgate.adapters.sandbox.toolchain import NotTrusted, trusted
from lockgate.errors import Unavailable
from lockgate.ports import Cut

WHY_NOT = trouble()
NEEDS_BOX = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs bubblewrap: {WHY_NOT}")
AS_ROOT = os.geteuid() == 0
BOX = Box(mounts=(), directory="/", env={})

# Its options end with `--json-status-fd N … -- /bin/sh -c SCRIPT NAME COMMAND…`.
FIND_STATUS = """
while [ "$1" != --json-status-fd ]; do shift; done
status=/proc/self/fd/$2
while [ "$1" != -- ]; do shift; done
shift
"""
RUNS_NOTHING = """
echo '{ "child-pid": '$$' }' >"$status"
echo '{ "exit-code": 0 }' >"$status"
"""
RUNS_NOTHING_BUT_ANSWERS = """
echo '{ "child-pid": '$$' }' >"$status"
read -r word
echo "$word mnt:1 pid:2 ipc:3 uts:4 net:5 user:6" >&2
read -r go
echo '{ "exit-code": 0 }' >"$status"
"""
RUNS_IT_OUTSIDE = """
echo '{ "child-pid": '$$' }' >"$status"
"$@"
echo '{ "exit-code": '$?' }' >"$status"
"""


def a_bwrap(directory: Path, script: str) -> Path:
    directory.mkdir(exist_ok=True)
    made = directory / "bwrap"
    made.write_text(f"#!/bin/sh\n{FIND_STATUS}{script}")
    made.chmod(0o755)
    return made


def run_by(bwrap: Path, command: str) -> Finished:
    return run_boxed(boxed(BOX, ("/bin/sh", "-c", command), bwrap=str(bwrap)), deadline=20.0)


# --- where its programs come from ---------------------------------------------------------------


@NEEDS_BOX
def test_a_bwrap_that_is_first_on_path_in_a_directory_of_ours_is_passed_over(
    tmp_path, monkeypatch
) -> None:
    a_bwrap(tmp_path, RUNS_NOTHING)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    done = run_boxed(boxed(BOX, ("/bin/sh", "-c", "echo inside; exit 3")))

    assert (done.code, done.out, done.cut) == (3, "inside\n", None)


def test_where_only_such_a_bwrap_is_there_it_is_named_with_the_reason(
    tmp_path, monkeypatch
) -> None:
    fake = a_bwrap(tmp_path, RUNS_NOTHING)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(Unavailable) as refused:
        trusted("bwrap")

    assert str(fake) in str(refused.value)
    assert "root" in str(refused.value)


@pytest.mark.parametrize("program", ["bwrap", "prlimit", "setpriv", "unshare"])
def test_every_program_that_the_sandbox_relies_on_is_looked_for_in_the_same_way(
    program, tmp_path, monkeypatch
) -> None:
    (tmp_path / program).write_text("#!/bin/sh\n")
    (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NotTrusted, match=program):
        trusted(program)


@pytest.mark.skipif(not AS_ROOT, reason="needs root: it makes directories that belong to root")
@pytest.mark.parametrize(
    ("path", "mode", "why"),
    [
        ("a/bin", 0o755, None),
        ("a/bin", 0o775, "can be written by others than root"),
        ("a", 0o777, "can be written by others than root"),
        ("a/bin/tool", 0o757, "can be written by others than root"),
    ],
)
def test_each_part_of_the_path_must_be_roots_alone(path, mode, why, tmp_path_of_root) -> None:
    tool = tmp_path_of_root / "a/bin/tool"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    (tmp_path_of_root / path).chmod(mode)

    found = _tried(tool)

    assert found == str(tool) if why is None else why in found


@pytest.mark.skipif(not AS_ROOT, reason="needs root: it makes directories that belong to root")
def test_root_takes_no_program_out_of_a_repository(tmp_path_of_root) -> None:
    tool = tmp_path_of_root / "repo/bin/tool"
    tool.parent.mkdir(parents=True)
    (tmp_path_of_root / "repo/.git").mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)

    assert f"{tmp_path_of_root}/repo is a git repository" in _tried(tool)


@pytest.mark.skipif(not AS_ROOT, reason="needs root: it gives files away")
def test_a_link_is_judged_by_where_it_leads(tmp_path_of_root) -> None:
    theirs = tmp_path_of_root / "theirs"
    theirs.mkdir()
    (theirs / "real").write_text("#!/bin/sh\n")
    (theirs / "real").chmod(0o755)
    os.chown(theirs, 65534, 65534)
    (tmp_path_of_root / "tool").symlink_to(theirs / "real")

    assert f"{theirs} belongs to uid 65534" in _tried(tmp_path_of_root / "tool")


def _tried(tool: Path) -> str:
    try:
        return trusted(tool.name, str(tool.parent))
    except Unavailable as error:
        return str(error)


@pytest.fixture
def tmp_path_of_root():
    """Below a directory that only root can write, which the temporary one is not."""
    made = Path(tempfile.mkdtemp(prefix="lockgate-test-", dir="/var/lib"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


# --- what its inside answers --------------------------------------------------------------------


@pytest.mark.parametrize("script", [RUNS_NOTHING, RUNS_NOTHING_BUT_ANSWERS, RUNS_IT_OUTSIDE])
def test_a_bwrap_that_encloses_nothing_is_not_believed(script, tmp_path) -> None:
    done = run_by(a_bwrap(tmp_path, script), f"touch {tmp_path}/ran; exit 0")

    assert done.cut is Cut.BOX
    assert "the sandbox was not proved" in done.err
    assert not (tmp_path / "ran").exists()


def test_a_probe_does_not_believe_it_either(tmp_path) -> None:
    said = trouble(str(a_bwrap(tmp_path, RUNS_NOTHING)))

    assert said is not None
    assert "the sandbox was not proved" in said


@NEEDS_BOX
def test_the_proof_leaves_no_trace_in_what_the_command_says_reads_or_holds() -> None:
    script = "cat; echo err >&2; ls /proc/self/fd | wc -l; tr '\\0' ' ' </proc/$$/cmdline; env"
    made = boxed(BOX, ("/bin/sh", "-c", script))

    done = run_boxed(made, stdin=b"given\n")

    given, descriptors, *rest = done.out.splitlines()
    assert (given, descriptors, done.err) == ("given", "4", "err\n")
    assert not [it for it in rest if it.startswith(("word=", "ids=", "go="))]


@NEEDS_BOX
def test_the_word_is_in_no_command_line() -> None:
    script = (
        "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -cE '^[0-9a-f]{32}$'"
    )

    assert run_boxed(boxed(BOX, ("/bin/sh", "-c", script))).out.strip() == "0"


# --- the answer, read ---------------------------------------------------------------------------


def a_proof() -> tuple[Proof, str]:
    """One that this very process answers."""
    proof = Proof(("mnt", "pid"))
    return proof, proof.word.decode().strip()


def test_an_answer_with_our_own_namespaces_proves_nothing() -> None:
    proof, word = a_proof()
    ids = " ".join(f"{it}:{namespace_of('self', it)}" for it in ("mnt", "pid"))

    rest = proof.hear(f"{word} {ids}\n".encode(), os.getpid())

    assert (proof.holds, rest) == (False, b"")
    assert "mnt" in proof.fault


def test_an_answer_that_the_kernel_does_not_confirm_proves_nothing() -> None:
    proof, word = a_proof()

    proof.hear(f"{word} mnt:1 pid:2\n".encode(), os.getpid())

    assert not proof.holds


def test_an_answer_without_one_of_the_namespaces_proves_nothing() -> None:
    proof, word = a_proof()

    proof.hear(f"{word} mnt:1\n".encode(), os.getpid())

    assert not proof.holds


def test_another_word_is_no_answer_and_is_passed_on() -> None:
    proof, _ = a_proof()

    assert proof.hear(b"bwrap: a warning\n", os.getpid()) == b""
    assert proof.hear(b"0000 mnt:1 pid:2\n", os.getpid()) == b""
    assert proof.unheard() == b"bwrap: a warning\n0000 mnt:1 pid:2\n"
    assert not proof.holds


@NEEDS_BOX
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_the_answer_of_a_process_elsewhere_is_taken_when_the_kernel_confirms_it() -> None:
    unshare = ("unshare", "-m") if AS_ROOT else ("unshare", "-Ur", "-m")
    with subprocess.Popen((*unshare, "cat"), stdin=subprocess.PIPE) as other:
        proof = Proof(("mnt",))
        ours = namespace_of("self", "mnt")
        while (theirs := namespace_of(other.pid, "mnt")) == ours:
            pass
        said = proof.word.strip() + f" mnt:{theirs}\n".encode()
        first = proof.hear(b"warning\n" + said[:20], other.pid)
        rest = proof.hear(said[20:] + b"more", other.pid)

    assert (proof.holds, first, rest) == (True, b"", b"warning\nmore")
