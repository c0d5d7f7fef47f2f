"""The sandbox, by running programs in it: what they see, what they can write, how they end."""

import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lockgate.adapters.run import Cut, Finished
from lockgate.adapters.sandbox import (
    Box,
    Boxed,
    Mount,
    boxed,
    owner,
    run_boxed,
    trouble,
)
from lockgate.adapters.sandbox.toolchain import toolchain
from lockgate.errors import Unavailable

WHY_NOT = trouble()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"needs bubblewrap: {WHY_NOT}")
AS_ROOT = os.geteuid() == 0


def shell(script: str, **more: Any) -> Finished:
    """What the script does in a box that was given nothing else."""
    return inside(Box(mounts=(), directory="/", env={}, **more), script)


def inside(box: Box, script: str) -> Finished:
    return run_boxed(boxed(box, ("/bin/sh", "-c", script)), deadline=30.0)


def given(directory: Path) -> Path:
    """A directory that a box may write, if it is mounted so."""
    directory.mkdir(parents=True)
    os.chown(directory, *owner())
    return directory


# --- what it sees -------------------------------------------------------------------------------


def test_a_program_runs_and_answers_with_its_code_and_both_outputs() -> None:
    done = shell("echo out; echo err >&2; exit 3")

    assert done == Finished(3, "out\n", "err\n")


def test_neither_the_state_directory_nor_a_home_is_there(tmp_path) -> None:
    state = tmp_path / "home"
    state.mkdir()
    (state / "lockgate.db").write_text("secret")
    (Path.home() / ".netrc").write_text("secret")

    files = f"{state}/lockgate.db {Path.home()}/.netrc"
    done = shell(f"cat {files}; ls -A {state} {Path.home()} /root/.ssh; ls -d /home/agent")

    assert done.out == "/home/agent\n"


def test_what_is_hidden_is_not_seen_though_its_surroundings_are(tmp_path) -> None:
    (tmp_path / "shown" / "state").mkdir(parents=True)
    (tmp_path / "shown" / "state" / "secret").write_text("secret")
    (tmp_path / "shown" / "seen").write_text("seen")
    shown, state = str(tmp_path / "shown"), str(tmp_path / "shown" / "state")

    done = shell(f"cat {shown}/seen; ls -A {state}", read=(shown,), hidden=(state,))

    assert done.out == "seen"


def a_home_with_secrets(monkeypatch: pytest.MonkeyPatch, user: Path) -> None:
    for name in (".ssh/id", ".aws/credentials", ".config/gh/hosts.yml", "notes.txt"):
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        (user / name).write_text(f"content of {name}\n")
    (user / ".netrc").write_text("content of .netrc\n")
    (user / "elsewhere").mkdir()
    (user / "elsewhere" / "config").write_text("content of .kube\n")
    (user / ".kube").symlink_to("elsewhere")
    for place in (user.parent, user):
        place.chmod(0o755)
    monkeypatch.setenv("HOME", str(user))


ALL = "cat .ssh/id .aws/credentials .config/gh/hosts.yml .netrc .kube/config elsewhere/config"


@pytest.mark.parametrize("read", ["~", "HOME", "ABOVE"])
def test_keys_and_logins_stay_hidden_though_the_whole_home_is_read(
    tmp_path, monkeypatch, read
) -> None:
    user = tmp_path / "u" / "ann"
    a_home_with_secrets(monkeypatch, user)
    path = {"HOME": str(user), "ABOVE": str(user.parent)}.get(read, read)

    done = shell(f"cd {user}; cat notes.txt; {ALL}; ls -A .ssh .aws", read=(path,))

    assert done.out == "content of notes.txt\n.aws:\n\n.ssh:\n"


def test_a_private_place_is_shown_where_it_is_named_itself_and_no_other_with_it(
    tmp_path, monkeypatch
) -> None:
    user = tmp_path / "u" / "ann"
    a_home_with_secrets(monkeypatch, user)

    done = shell(f"cd {user}; {ALL}", read=("~", "~/.aws", "~/.config/gh/hosts.yml"))

    assert done.out == "content of .aws/credentials\ncontent of .config/gh/hosts.yml\n"


def test_the_toolchain_and_what_was_asked_for_are_shown_but_not_to_be_written(tmp_path) -> None:
    (tmp_path / "wanted").write_text("wanted")
    python = f"{sys.executable} -c 'import lockgate; print(lockgate.__version__)'"

    done = shell(
        f"PYTHONPATH={Path(__file__).parents[3] / 'src'} {python} && cat {tmp_path}/wanted; "
        f"echo more > {tmp_path}/wanted",
        read=(str(tmp_path / "wanted"),),
    )

    assert done.out.endswith("wanted")
    assert "cannot create" in done.err
    assert (tmp_path / "wanted").read_text() == "wanted"


def test_the_users_links_lead_to_where_they_lead(tmp_path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("found")
    (tmp_path / "link").symlink_to("real")

    assert shell(f"cat {tmp_path}/link/file", read=(str(tmp_path / "link"),)).out == "found"


def test_a_tool_in_the_users_local_directory_is_shown_and_the_state_beside_it_is_not(
    monkeypatch,
) -> None:
    local = Path.home() / ".local"
    for place in ("bin", "share/tool/versions/1", "state/lockgate", "share/keyrings"):
        (local / place).mkdir(parents=True)
    (local / "share/tool/versions/1/tool").write_text("#!/bin/sh\necho it runs\n")
    (local / "share/tool/versions/1/tool").chmod(0o755)
    (local / "bin" / "tool").symlink_to(local / "share/tool/versions/1/tool")
    monkeypatch.setenv("PATH", f"{local}/bin:{os.environ['PATH']}")

    done = shell(f"tool; ls {local} {local}/share")

    assert "it runs" in done.out
    assert "state" not in done.out
    assert "keyrings" not in done.out


def test_credentials_beside_programs_are_not_shown_but_their_libraries_are(monkeypatch) -> None:
    prefix = Path.home() / ".tool"
    for place in ("bin", "lib"):
        (prefix / place).mkdir(parents=True)
    (prefix / "credentials.toml").write_text("secret")
    monkeypatch.setenv("PATH", f"{prefix}/bin:{os.environ['PATH']}")

    assert str(prefix / "bin") in toolchain()
    assert shell(f"ls -A {prefix}").out == "bin\nlib\n"


def test_a_directory_of_its_own_is_shown_whole(monkeypatch) -> None:
    prefix = Path.home() / ".nvm" / "versions" / "node" / "v20"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "CHANGELOG.md").write_text("text")
    monkeypatch.setenv("PATH", f"{prefix}/bin:{os.environ['PATH']}")

    assert shell(f"cat {prefix}/CHANGELOG.md").out == "text"


def test_a_tool_for_many_versions_finds_them_though_its_home_is_another(monkeypatch) -> None:
    root = Path.home() / ".pyenv"
    (root / "shims").mkdir(parents=True)
    (root / "version").write_text("3.11\n")
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    monkeypatch.setenv("PATH", f"{root}/shims:{os.environ['PATH']}")

    assert shell("cat $PYENV_ROOT/version").out == "3.11\n"


def test_a_mount_inside_of_what_is_hidden_is_seen(tmp_path) -> None:
    shown, state = tmp_path / "shown", tmp_path / "shown" / "state"
    (state / "task").mkdir(parents=True)
    (state / "task" / "file").write_text("file")
    (state / "secret").write_text("secret")
    box = Box(
        mounts=(Mount(source=state / "task", target=str(state / "deep" / "task")),),
        directory="/",
        env={},
        read=(str(shown),),
        hidden=(str(state),),
    )

    assert inside(box, f"ls {state}; cat {state}/deep/task/file").out == "deep\nfile"


def test_a_box_may_have_a_thousand_mounts(tmp_path) -> None:
    (tmp_path / "file").write_text("text")
    mounts = tuple(Mount(source=tmp_path / "file", target=f"/many/{n}") for n in range(1000))

    assert inside(Box(mounts=mounts, directory="/", env={}), "ls /many | wc -l").out == "1000\n"


def test_a_work_tree_on_the_path_is_not_shown(monkeypatch, tmp_path) -> None:
    (tmp_path / "tree" / "bin").mkdir(parents=True)
    (tmp_path / "tree" / ".git").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/tree/bin:{os.environ['PATH']}")

    assert str(tmp_path / "tree" / "bin") in toolchain()
    assert shell(f"ls -A {tmp_path}/tree").out == "bin\n"


def test_nothing_of_our_environment_is_there(monkeypatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "secret")

    done = inside(
        Box(mounts=(), directory="/", env={"GIVEN": "given"}),
        "env; tr '\\0' '\\n' < /proc/1/environ; tr '\\0' '\\n' < /proc/1/cmdline",
    )

    assert "GIVEN=given" in done.out
    assert "SECRET_KEY" not in done.out
    assert "--setenv" not in done.out
    for name in ("PATH", "LANG", "TMPDIR", "HOME"):
        assert f"\n{name}=" in f"\n{done.out}"


def test_it_has_its_own_processes_and_is_not_alone_without_them() -> None:
    done = shell(f"ls -d /proc/[0-9]* | wc -l; kill -0 {os.getpid()} || echo not there")

    assert int(done.out.split()[0]) < 10
    assert "not there" in done.out


@pytest.mark.skipif(not AS_ROOT, reason="needs root: what it gives up is root's")
def test_root_gives_everything_up() -> None:
    done = shell("id -u; id -G; grep -E 'Cap(Eff|Prm|Bnd|Amb)|NoNewPrivs' /proc/self/status")

    uid, groups, *rest = done.out.splitlines()
    assert (uid, groups) == ("65534", "65534")
    assert [it.split()[1] for it in rest] == ["0000000000000000"] * 4 + ["1"]
    assert shell("cat /etc/shadow").code != 0


@pytest.mark.skipif(AS_ROOT, reason="a user's namespaces are closed; root has none to close")
def test_a_user_gets_no_further_user_namespace() -> None:
    assert shell("unshare -U true").code != 0


# --- what it can write --------------------------------------------------------------------------


def test_it_writes_where_it_may_and_nowhere_else(tmp_path) -> None:
    writable, readable = given(tmp_path / "writable"), given(tmp_path / "readable")
    box = Box(
        mounts=(
            Mount(source=writable, target="/workspace", writable=True),
            Mount(source=readable, target="/workspace/inner"),
        ),
        directory="/workspace",
        env={},
    )

    done = inside(
        box,
        "for place in . /tmp /var/tmp /dev/shm $HOME inner / /usr /etc /run /dev /proc /opt; do "
        "(: > $place/planted) 2>/dev/null && echo $place; done",
    )

    assert done.out.split() == [".", "/tmp", "/var/tmp", "/dev/shm", "/home/agent"]  # noqa: S108
    assert (writable / "planted").stat().st_uid == owner()[0]
    assert not (readable / "planted").exists()
    assert not Path("/tmp/planted").exists()  # noqa: S108


def test_a_link_in_a_mount_leads_nowhere_outside(tmp_path) -> None:
    (tmp_path / "outside").write_text("secret")
    writable = given(tmp_path / "writable")
    (writable / "link").symlink_to(tmp_path / "outside")
    box = Box(
        mounts=(Mount(source=writable, target="/workspace", writable=True),),
        directory="/workspace",
        env={},
    )

    done = inside(box, "cat link; echo more > link")

    assert done.out == ""
    assert (tmp_path / "outside").read_text() == "secret"


def test_its_scratch_is_bounded() -> None:
    done = shell("head -c 20000000 /dev/zero > /tmp/big", scratch_mb=8)

    assert done.code != 0
    assert "No space left" in done.err


# --- the network --------------------------------------------------------------------------------


@pytest.mark.parametrize(("network", "reached"), [(False, False), (True, True)])
def test_the_network_is_there_only_where_it_was_asked_for(network, reached) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"

        done = shell(f'{sys.executable} -I -S -c "{script}"', network=network)

    assert (done.code == 0) is reached


def test_its_own_localhost_works_without_a_network() -> None:
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "socket.create_connection(s.getsockname(), 5)"
    )

    assert shell(f'{sys.executable} -I -S -c "{script}"').code == 0


# --- how it ends --------------------------------------------------------------------------------


def survivors(mark: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [place.parent.name] if mark.encode() in place.read_bytes() else []
        except OSError:
            continue
    return found


def test_a_box_that_takes_too_long_is_ended_with_all_it_started(tmp_path) -> None:
    seconds = "86123"
    begin = time.monotonic()

    done = run_boxed(
        boxed(
            Box(mounts=(), directory="/", env={}),
            ("sh", "-c", f"trap '' TERM; setsid sleep {seconds} & sleep {seconds}"),
        ),
        deadline=0.5,
    )

    assert done.cut is Cut.DEADLINE
    assert time.monotonic() - begin < 10
    assert survivors(seconds) == []


def test_a_box_that_is_no_longer_wanted_is_ended() -> None:
    unwanted = threading.Event()
    timer = threading.Timer(0.3, unwanted.set)
    timer.start()

    done = run_boxed(
        boxed(Box(mounts=(), directory="/", env={}), ("sleep", "86124")),
        cancelled=unwanted.is_set,
    )

    timer.join()
    assert done.cut is Cut.CANCELLED
    assert survivors("86124") == []


def test_a_daemon_does_not_outlive_its_box_nor_delay_it() -> None:
    begin = time.monotonic()

    done = shell("(setsid sleep 86125 &) ; echo done")

    assert (done.code, done.out, done.cut) == (0, "done\n", None)
    assert time.monotonic() - begin < 10
    assert survivors("86125") == []


def test_a_box_that_cannot_be_made_is_not_taken_for_a_program_that_failed(tmp_path) -> None:
    box = Box(mounts=(Mount(source=tmp_path / "gone", target="/x"),), directory="/", env={})

    done = inside(box, "true")

    assert done.cut is Cut.BOX
    assert "gone" in done.err


def test_a_flood_of_output_costs_little_and_both_its_ends_are_kept() -> None:
    before = peak_memory()

    done = shell("echo first; head -c 300000000 /dev/zero; echo last")

    assert done.out.startswith("first\n")
    assert done.out.endswith("last\n")
    assert "bytes left out" in done.out
    assert len(done.out) < 2_500_000
    assert peak_memory() - before < 50_000


def peak_memory() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(it for it in lines if it.startswith("VmHWM")).split()[1])


def test_it_reads_what_it_is_given_and_writes_to_a_file_what_is_wanted_whole(tmp_path) -> None:
    content = os.urandom(3_000_000)

    done = run_boxed(
        boxed(Box(mounts=(), directory="/", env={}), ("cat",)),
        stdin=content,
        stdout=tmp_path / "out",
    )

    assert done == Finished(0, "", "")
    assert (tmp_path / "out").read_bytes() == content


def test_a_program_that_does_not_read_what_it_is_given_ends_all_the_same() -> None:
    done = run_boxed(
        boxed(Box(mounts=(), directory="/", env={}), ("sh", "-c", "exit 4")), stdin=b"x" * 5_000_000
    )

    assert (done.code, done.cut) == (4, None)


def test_what_cannot_be_started_at_all_is_told() -> None:
    with pytest.raises(Unavailable, match="no-such-program is not there"):
        run_boxed(Boxed(program=("no-such-program",), options=(), argv=("true",)))


# --- where it does not work ---------------------------------------------------------------------


@pytest.fixture
def _afresh():
    trouble.cache_clear()
    yield
    trouble.cache_clear()


@pytest.mark.usefixtures("_afresh")
def test_a_machine_without_bubblewrap_is_told_so(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    said = str(trouble())

    assert said.startswith("bwrap is not on PATH (it is in the package bubblewrap);")
    assert "apt install bubblewrap" in said


@pytest.mark.usefixtures("_afresh")
def test_a_bubblewrap_that_is_not_let_is_told_with_its_own_words(tmp_path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'No permissions to create' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)

    said = trouble(str(tmp_path / "bwrap"))

    assert said is not None
    assert said.startswith("bubblewrap does not work here: No permissions to create;")
    assert "user.max_user_namespaces" in said


@pytest.mark.usefixtures("_afresh")
def test_a_bubblewrap_whose_program_writes_outside_is_found_out(tmp_path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 99\n")
    (tmp_path / "bwrap").chmod(0o755)

    assert trouble(str(tmp_path / "bwrap")) == "a program in the sandbox wrote outside of it"


@pytest.mark.parametrize("network", [False, True])
def test_tests_that_need_an_identity_a_host_name_or_a_terminal_have_one(network) -> None:
    done = shell(
        "cd /tmp && git init -q x && cd x && git commit -q --allow-empty -m x"
        " && git log -1 --format=%ae && git config user.name Own && git config user.name"
        " && getent hosts $(hostname) >/dev/null && echo resolved && tput cols >/dev/null"
        " && echo $TERM",
        network=network,
    )

    assert done.out.split() == ["sandbox@localhost", "Own", "resolved", "xterm"], done.err


def test_a_git_configuration_of_its_own_wins_over_the_boxs() -> None:
    done = shell(
        "git config --global user.name Mine && git config user.name && git config user.email"
    )

    assert done.out.splitlines() == ["Mine", "sandbox@localhost"], done.err
