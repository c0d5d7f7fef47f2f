"""Which commands cannot fail, whatever they find."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.config.shell_masks import LONGEST, masked

MASKED = {
    "pytest || true": "`|| true`",
    "pytest||:": "`|| :`",
    "pytest; true": "`; true`",
    "pytest; exit 0": "`; exit 0`",
    "pytest\necho done\n": "`; echo done`",
    "pytest || exit 0": "`|| exit 0`",
    "pytest || echo 'failed, || true'": "makes a success",
    "cd app && pytest || true": "`|| true`",
    "CI=1 pytest > log 2>&1 || true": "`|| true`",
    "(pytest) || true": "`|| true`",
    "pytest || true && echo done": "`|| true`",
    "pytest | tee log": "`tee`",
    "pytest 2>&1 | /usr/bin/tail -n 5": "`tail`",
    "pytest |& cat": "`cat`",
    "pytest | echo": "nothing that could fail",
    "bash -c 'pytest | tee log'": "`tee`",
    "bash -c 'pytest || true'": "`|| true`",
    "pytest &": "not waited for",
    "pytest; exit 0; mypy": "`; exit 0`",
    "true": "nothing that could fail",
    "exit 0": "nothing that could fail",
    "": "nothing that could fail",
    " # pytest": "nothing that could fail",
    ";": "nothing that could fail",
    "true | exit 0": "",
    "pytest -k 'this is a long name for a test' &": "…",
}
OPEN = (
    "pytest -q",
    "FOO=1",
    "pytest && echo done",
    "pytest || exit 1",
    "pytest || (echo red; exit 1)",
    "command -v x || true && pytest",
    "set -e; pytest; true",
    "set -o errexit\npytest\necho done",
    "set -o pipefail; pytest | tee log",
    "bash -euo pipefail -c 'pytest | tee log'",
    "bash run.sh",
    "bash -c pytest",
    "bash -c 'cat <<X'",
    "pytest & wait $!",
    "exec pytest; true",
    "for it in a b; do pytest $it || true; done",
    "if pytest; then true; else false; fi",
    "cat <<END\npytest\nEND\ntrue",
    "echo '|| true' && pytest",
    "pytest # || true",
    "true && pytest",
    "echo \\\n hello && pytest",
    "'unclosed || true",
    "! grep -rq TODO src",
    "false || pytest",
    "pytest | grep -q passed",
)


@pytest.mark.parametrize("command", [it for it in MASKED if MASKED[it]])
def test_a_command_that_cannot_fail_is_named_with_the_reason(command: str) -> None:
    assert MASKED[command] in masked(command)


@pytest.mark.parametrize("command", OPEN)
def test_a_command_that_can_fail_is_let_be(command: str) -> None:
    assert masked(command) == ""


def test_a_command_longer_than_anybody_writes_is_not_read() -> None:
    assert masked(f"pytest {'x' * LONGEST} || true") == ""


PIECES = st.sampled_from(["true", "false", ":", "echo a", "exit 0", "exit 1", "sh -c 'exit 3'"])
JOINTS = st.sampled_from([" && ", " || ", "; ", " | ", "\n", " | cat; "])


@given(PIECES, st.lists(st.tuples(JOINTS, PIECES), max_size=5))
def test_what_is_said_to_be_masked_succeeds_in_a_real_shell(
    first: str, rest: list[tuple[str, str]]
) -> None:
    command = first + "".join(joint + piece for joint, piece in rest)

    if masked(command):
        done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)

        assert done.returncode == 0, command


@given(st.text(alphabet="a|&;()<>'\"\\`$# \n{}!exit 0true", max_size=60))
def test_no_text_is_too_odd_to_be_read(command: str) -> None:
    assert isinstance(masked(command), str)
