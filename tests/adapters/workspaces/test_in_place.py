"""Gates without a sandbox: in the checkout itself, which each attempt finds as it was made."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.gate_commands import CommandGates
from lockgate.adapters.sandbox import scratch
from lockgate.adapters.workspaces.files import remove
from lockgate.core.config.settings import SandboxLevel, Service
from lockgate.errors import Unavailable
from lockgate.ports import Attempt, Upkeep
from tests.adapters.gatehouse import Gatehouse, a_gatehouse, gate, unread

SEEN = "find . -mindepth 1 | sort; stat -c '%n %a %Y %s' .git/index file deep/er; cat file"
CHANGES = {
    "writes": "echo more >> file",
    "writes as much, and sets the time back": (
        "touch -r file ../mark; printf 'as it saw\\n' > file; touch -r ../mark file; rm ../mark"
    ),
    "writes through a mapping": (
        "python3 -c \"import mmap; f = open('file', 'r+b'); mmap.mmap(f.fileno(), 0)[:2] = b'no'\""
    ),
    "replaces": "cp file ../other; mv ../other file",
    "adds": "mkdir -p build/deep; echo x > build/deep/x",
    "adds what git ignores": "echo x > .git/info-x",
    "adds a directory": "mkdir deep/er-still",
    "adds a name": "ln file other",
    "swaps two names": "mv file other; mv deep/er file; mv other deep/er",
    "deletes": "rm deep/er",
    "deletes all of it": 'rm -rf "$PWD"',
    "chmods a file": "chmod 400 file",
    "chmods the top": "chmod 700 .",
    "shuts a directory": "chmod 000 deep",
    "touches": "touch -d 2001-01-01 file",
    "writes the index": "echo x >> .git/index",
    "puts a link there": "rm file; ln -s /etc/hostname file",
}
HARMLESS = {
    "reads": "cat file deep/er .git/index > /dev/null",
    "writes beside it": 'echo x > "$TMPDIR/x"; echo x > "$HOME/x"; chmod 000 "$SCRATCH"',
    "prints": "echo words; echo more >&2",
}


@dataclass
class Kept:
    """A gatehouse whose checkout can be made anew, and how often it was."""

    house: Gatehouse
    renewed: int = 0
    upkeep: Upkeep = field(init=False)

    def __post_init__(self) -> None:
        self.upkeep = Upkeep(self.renew)
        make(self.house.checkout)

    def renew(self) -> None:
        self.renewed += 1
        remove(self.house.checkout)
        make(self.house.checkout)

    def bare(
        self, command: str, *, alone: bool = True, services: tuple[Service, ...] = ()
    ) -> Attempt:
        run = self.house.run(services, level=SandboxLevel.NONE)
        run = replace(run, upkeep=self.upkeep, alone=alone)
        return CommandGates(reader=unread).attempt(gate(command), run, lambda: False)


def make(checkout: Path) -> None:
    for name, text in {"file": "as it was\n", "deep/er": "x\n", ".git/index": "DIRC"}.items():
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(text)
        os.utime(checkout / name, (10**9, 10**9))


def fails() -> None:
    message = "no room"
    raise OSError(message)


@pytest.fixture
def kept(tmp_path):
    """Afterwards nothing is left but what goes with the checkout."""
    made = Kept(a_gatehouse(tmp_path))
    yield made
    beside = {it.name for it in made.upkeep.seen} - {"checkout"}
    assert made.house.beside() == beside
    assert len(beside) <= 1


@pytest.mark.req("R52")
@pytest.mark.parametrize("command", CHANGES.values(), ids=CHANGES)
def test_whatever_an_attempt_does_to_the_tree_the_next_one_finds_it_as_it_was(
    kept, command
) -> None:
    first = kept.bare(SEEN)

    kept.bare(command)
    second = kept.bare(SEEN)

    assert second.out == first.out
    assert kept.renewed == 1


@pytest.mark.parametrize("command", HARMLESS.values(), ids=HARMLESS)
def test_a_tree_that_nobody_changed_is_not_made_anew(kept, command) -> None:
    for _ in range(3):
        assert kept.bare(command).exit_code == 0

    assert kept.renewed == 0


def test_what_it_left_beside_the_tree_is_gone_for_the_next(kept) -> None:
    look = 'ls -A "$HOME" "$TMPDIR" "$OUT" "$SCRATCH"; stat -c %a "$SCRATCH"'
    first = kept.bare(look)

    kept.bare('for it in "$HOME" "$TMPDIR" "$SCRATCH"; do echo x > "$it/x"; done')
    kept.bare('chmod 000 "$SCRATCH"')

    assert kept.bare(look).out.splitlines()[-1] == first.out.splitlines()[-1]
    assert "x" not in kept.bare(look).out.split()


def test_what_it_left_beside_the_tree_at_once_or_much_later_is_gone_too(kept) -> None:
    for pause in (0, 0, 0, 0.02, 0.02):
        kept.bare("true")
        time.sleep(pause)
        kept.bare("true")
        kept.bare('mkdir "$HOME/x"')

        assert kept.bare('ls -A "$HOME"').out == ""


def test_what_a_long_one_left_running_ends_with_it(kept, tmp_path) -> None:
    late = f"{tmp_path}/late"

    kept.bare(f"setsid sh -c 'sleep 2; touch {late}' >/dev/null 2>&1 </dev/null & sleep 1.2")
    time.sleep(1.2)

    assert not Path(late).exists()


def test_the_same_directories_serve_as_long_as_they_are_empty(kept) -> None:
    said = {kept.bare('echo "$PWD $TMPDIR"').out for _ in range(3)}

    assert len(said) == 1
    assert said.pop().startswith(str(kept.house.checkout))


def test_a_change_between_two_attempts_is_seen_too(kept) -> None:
    kept.bare("true")
    (kept.house.checkout / "file").write_text("by somebody else\n")

    assert kept.bare("cat file").out == "as it was\n"


def test_a_changed_tree_that_could_not_be_made_anew_is_not_taken_for_the_one_that_was(kept) -> None:
    kept.bare("true")
    kept.bare("echo more >> file")
    kept.upkeep.renew = fails

    for _ in range(2):
        with pytest.raises(Unavailable):
            kept.bare("true")


def test_what_it_leaves_running_ends_with_it_and_writes_nothing_later(kept, tmp_path) -> None:
    late = f"echo late >> file; touch {tmp_path}/late"
    begun = f"{tmp_path}/begun"

    kept.bare(
        f"setsid sh -c 'touch {begun}; sleep 0.7; {late}' >/dev/null 2>&1 </dev/null & "
        f"until [ -e {begun} ]; do sleep 0.02; done"
    )
    time.sleep(1)

    assert not (tmp_path / "late").exists()
    assert kept.bare("cat file").out == "as it was\n"


def test_one_that_closes_its_outputs_is_waited_for(kept) -> None:
    assert kept.bare("exec >/dev/null 2>&1; sleep 0.3; exit 3").exit_code == 3


def test_beside_others_an_attempt_gets_a_copy_of_the_tree_as_it_was(kept) -> None:
    kept.bare("true")
    kept.bare("echo more >> file")

    assert kept.bare("cat file; echo x > file", alone=False).out == "as it was\n"
    assert kept.bare("cat file; echo x > file", alone=False).out == "as it was\n"
    assert kept.renewed == 1


def test_services_run_beside_one_in_the_checkout(kept) -> None:
    up = '"$SCRATCH/up"'
    service = Service("server", f"touch {up}; exec sleep 86130", f"test -e {up}")

    assert kept.bare(f"test -e {up}", services=(service,)).exit_code == 0
    assert kept.bare(f"test ! -e {up} || test -e {up}", services=(service,)).exit_code == 0


def test_a_change_in_the_very_step_of_the_clock_in_which_it_was_made_is_seen(kept) -> None:
    file = kept.house.checkout / "file"
    scratch.have_as_made(kept.house.checkout, kept.upkeep)

    for _ in range(20):
        with file.open("r+b") as opened:
            opened.write(b"as it WAS")
        scratch.have_as_made(kept.house.checkout, kept.upkeep)
        assert file.read_text() == "as it was\n"

    assert kept.renewed == 20
