"""A session's output as it grows, read as far as it is new."""

from pathlib import Path

import pytest

from lockgate.adapters.sessions.runner.files import Log
from lockgate.adapters.sessions.tail import AT_ONCE, FIRST, Tail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "stdout.log").write_bytes(b"")
    return tmp_path / "stdout.log"


def add(log: Path, text: bytes) -> None:
    with log.open("ab") as file:
        file.write(text)


def test_each_look_gets_the_whole_lines_that_came_since(tmp_path, log) -> None:
    add(log, b"one\ntwo\nthr")
    tail = Tail(str(tmp_path))

    first = tail.lines()
    nothing = tail.lines()
    add(log, "ee\nfünf".encode()[:-2])
    second = tail.lines()

    assert (first, nothing, second) == (["one", "two"], [], ["three"])


def test_both_logs_are_followed_and_one_may_come_later(tmp_path) -> None:
    tail = Tail(str(tmp_path))
    before = tail.lines()
    (tmp_path / "stdout.log").write_text("out\n")
    (tmp_path / "stderr.log").write_text("err\n")

    assert (before, tail.lines()) == ([], ["out", "err"])


def test_the_first_look_shows_the_end_of_what_is_there_in_whole_lines(tmp_path, log) -> None:
    add(log, b"".join(b"line %d\n" % n for n in range(10_000)))

    lines = Tail(str(tmp_path)).lines()

    assert lines[-1] == "line 9999"
    assert all(it.startswith("line ") for it in lines)
    assert len("\n".join(lines)) <= FIRST


def test_a_line_without_an_end_comes_in_pieces_and_bytes_that_are_no_text_are_shown(
    tmp_path, log
) -> None:
    tail = Tail(str(tmp_path))
    tail.lines()
    add(log, b"x" * (AT_ONCE + 10) + b"\n\xff\n")

    first, second = tail.lines(), tail.lines()

    assert [len(it) for it in first] == [AT_ONCE]
    assert second == ["x" * 10, "\ufffd"]


def test_a_log_that_goes_on_in_other_parts_is_followed_there(tmp_path) -> None:
    log = Log(str(tmp_path / "stdout.log"), 400)  # a head of 200 bytes, then parts of 100
    tail = Tail(str(tmp_path))
    seen = list[str]()
    for n in range(60):
        log.write(b"line %02d\n" % n)
        seen += tail.lines()
    log.close()
    for _ in range(9):
        seen += tail.lines()

    assert seen == [f"line {n:02}" for n in range(60)]


def test_what_was_written_while_nobody_looked_and_is_gone_is_told_as_left_out(tmp_path) -> None:
    log = Log(str(tmp_path / "stdout.log"), 400)
    log.write(b"".join(b"line %02d\n" % n for n in range(40)))  # in the second part
    tail = Tail(str(tmp_path))
    tail.lines()
    for n in range(40, 100):
        log.write(b"line %02d\n" % n)
    log.close()
    seen = list[str]()
    for _ in range(9):
        seen += tail.lines()

    assert "… output left out …" in seen
    assert seen[-1] == "line 99"
