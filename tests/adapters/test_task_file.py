"""TASK.md on disk, with real files: what is read, what is refused, and that writing is whole."""

import os
import resource
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lockgate.adapters.task_file import (
    TaskFiles,
    parse_frontmatter,
    read_task_file,
    render_frontmatter,
    split_frontmatter,
    write_task_file,
)
from lockgate.adapters.task_file.files import (
    HISTORY,
    KEPT,
    KEPT_BYTES,
    LARGEST,
    add_checkpoint,
    last_checkpoint,
)
from lockgate.core.model.task import TaskId
from lockgate.core.text.checkpoints import ONE_BYTES
from lockgate.core.text.task_file import BrokenFrontmatter, Missing, Readable, TaskText, Unreadable
from lockgate.errors import Unavailable

T1 = TaskId("t1")
FIELDS: dict[str, str | int] = {"id": "t1", "summary": "Fix: it", "crash_count": 0}


@pytest.fixture
def files(tmp_path: Path) -> TaskFiles:
    return TaskFiles(tmp_path / "home")


def refused(directory: Path) -> str:
    found = read_task_file(directory)
    assert isinstance(found, Unreadable)
    return found.why


# --- reading ------------------------------------------------------------------------------------


@pytest.mark.req("R73")
def test_a_file_is_read_as_frontmatter_and_body(tmp_path):
    (tmp_path / "TASK.md").write_bytes(b"\xef\xbb\xbf---\nid: t1\n---\n## Handoff\nDONE\n")

    found = read_task_file(tmp_path)

    assert isinstance(found, Readable)
    assert (found.frontmatter, found.body) == ("id: t1\n", "## Handoff\nDONE\n")
    assert len(found.digest) == 64


def test_a_file_that_is_not_there_is_missing(tmp_path):
    assert read_task_file(tmp_path) == Missing()
    assert read_task_file(tmp_path / "nowhere") == Missing()


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("PASS")
    (tmp_path / "TASK.md").symlink_to(tmp_path / "secret")

    assert refused(tmp_path) == "it is a link"


def test_a_link_to_nothing_is_refused(tmp_path):
    (tmp_path / "TASK.md").symlink_to("nowhere")

    assert refused(tmp_path) == "it is a link"


def test_a_directory_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "TASK.md").write_text("x")
    (tmp_path / "link").symlink_to("real")

    assert "directory" in refused(tmp_path / "link")


def test_a_file_with_a_second_name_is_refused(tmp_path):
    (tmp_path / "other").write_text("x")
    os.link(tmp_path / "other", tmp_path / "TASK.md")

    assert "hard link" in refused(tmp_path)


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "TASK.md")

    assert refused(tmp_path) == "it is not a regular file"


def test_a_directory_in_its_place_is_refused(tmp_path):
    (tmp_path / "TASK.md").mkdir()

    assert refused(tmp_path) == "it is not a regular file"


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("TASK.md")

        assert refused(tmp_path) == "it is a socket"


@pytest.mark.parametrize("name", ["zero", "null", "full"])
def test_a_device_is_refused(name):
    found = read_task_file(Path("/dev"), name)

    assert isinstance(found, Unreadable)
    assert found.why == "it is not a regular file"


def test_a_huge_file_is_refused_unread(tmp_path):
    with (tmp_path / "TASK.md").open("wb") as file:
        file.truncate(50_000_000)
    began = time.thread_time()

    assert "50000000 bytes" in refused(tmp_path)
    assert time.thread_time() - began < 0.5


def test_a_file_of_the_largest_size_is_read(tmp_path):
    (tmp_path / "TASK.md").write_bytes(b"x" * LARGEST)

    assert isinstance(read_task_file(tmp_path), Readable)


def test_a_file_that_has_no_size_and_does_not_end_is_refused():
    found = read_task_file(Path(f"/proc/{os.getpid()}"), "smaps", limit=64)

    assert isinstance(found, Unreadable)
    assert "grew" in found.why


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"## Handoff\n\xff\xfe", "byte 11 is not UTF-8"),
        (b"\xc3", "byte 0 is not UTF-8"),
        (b"\xed\xa0\x80", "byte 0 is not UTF-8"),
        (b"PASS\n\0", "it holds a NUL byte"),
        ("PASS\n".encode("utf-16"), "byte 0 is not UTF-8"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path, data, why):
    (tmp_path / "TASK.md").write_bytes(data)

    assert refused(tmp_path) == why


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_whose_mode_forbids_reading_is_refused(tmp_path):
    (tmp_path / "TASK.md").write_text("x")
    (tmp_path / "TASK.md").chmod(0)

    assert refused(tmp_path) == "its mode forbids it"


def test_an_error_of_the_system_is_ours():
    with pytest.raises(Unavailable, match=r"TASK\.md was not read"):
        read_task_file(Path("/" + "x" * 300))


def test_a_racing_swapper_gets_nothing_else_read(tmp_path):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "honest").write_text("honest")
    target = tmp_path / "TASK.md"
    stop = threading.Event()

    def swap() -> None:
        beside = tmp_path / "beside"
        while not stop.is_set():
            beside.symlink_to(tmp_path / "secret")
            beside.rename(target)
            os.mkfifo(beside)
            beside.rename(target)
            beside.write_text("honest")
            beside.rename(target)

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen = set()
    until = time.monotonic() + 1
    while time.monotonic() < until:
        found = read_task_file(tmp_path)
        seen.add(found.body if isinstance(found, Readable) else type(found).__name__)
    stop.set()
    swapper.join()

    assert seen <= {"honest", "", "Unreadable", "Missing"}
    assert "Unreadable" in seen


# --- frontmatter --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\na: b\n---\nbody", ("a: b\n", "body")),
        ("---\r\na: b\r\n---\r\nbody", ("a: b\r\n", "body")),
        ("--- \n---\t\n", ("", "")),
        ("body\n---\n", (None, "body\n---\n")),
        ("", (None, "")),
        ("---", (None, "---")),
        ("---\na: b\n## Review\nPASS\n", ("a: b\n## Review\nPASS\n", "")),
        ("---\na: |\n  ---\n---\nbody", ("a: |\n  ---\n", "body")),
        ("----\na\n---\n", (None, "----\na\n---\n")),
    ],
)
def test_the_frontmatter_ends_at_its_fence_and_without_one_there_is_no_body(text, expected):
    assert split_frontmatter(text) == expected


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        ("# only a comment\n", {}),
        ("id: t1\ncrash_count: 2\n", {"id": "t1", "crash_count": 2}),
        ("a: '2'\nb: \"x\"\nc: -3\n", {"a": "2", "b": "x", "c": -3}),
        ("a: [1, x]\nb:\n- y\n", {"a": [1, "x"], "b": ["y"]}),
        ("a: true\nb: false\nc:\nd: ~\n", {"a": True, "b": False, "c": None, "d": None}),
        (
            "a: 2026-01-01\nb: 1.5\nc: yes\nd: 007\n",
            {"a": "2026-01-01", "b": "1.5", "c": "yes", "d": "007"},
        ),
        ("1: x\n<<: y\n", {"1": "x", "<<": "y"}),
    ],
)
def test_plain_frontmatter_is_read_as_it_looks(text, fields):
    assert parse_frontmatter(text) == fields


BOMB = "a: &a [x,x]\n" + "".join(f"{n}: &{n} [*a,*a]\n" for n in "bcdefghi")


@pytest.mark.parametrize(
    ("text", "why", "line"),
    [
        (BOMB, "anchors", 2),
        ("a: 1\nb: *a\n", "aliases", 3),
        ("a: !!python/object/apply:os.system [id]\n", "anchors and tags", 2),
        ("a: !!str 1\n", "tags", 2),
        ("&a a: 1\n", "anchors", 2),
        ("!!map {a: b}\n", "tags", 2),
        ("a: 1\nb: 2\na: 3\n", "'a' stands there twice", 4),
        ("a: {b: c}\n", "flat lists", 2),
        ("a: [[b]]\n", "flat lists", 2),
        ("? [a]\n: b\n", "flat lists", 2),
        ("- a\n", "names and values", 2),
        ("only text\n", "names and values", 2),
        ("a: 1\n--- b\n", "second document", 3),
        ("a: 'never closed\n", "not YAML", 3),
        ("a: b: c\n", "not YAML", 2),
        ("a: b\n\tc: d\n", "not YAML", 3),
        ("a: 1\nb: \x07\n", "character that YAML forbids", 3),
        ("[" * 16_000, "names and values", 2),
        ("{" * 16_000, "flat lists", 2),
        ("a: " + "[" * 16_000, "flat lists", 2),
        ("a: " + "x" * 70_000, "longer than", 2),
    ],
)
def test_all_other_yaml_is_refused_with_its_line_and_soon(text, why, line):
    began = time.thread_time()  # a busy machine takes nothing of that

    found = parse_frontmatter(text)

    assert isinstance(found, BrokenFrontmatter)
    assert why in found.why
    assert found.line == line
    assert time.thread_time() - began < 3


@given(st.text())
def test_any_frontmatter_is_read_or_refused(text):
    assert isinstance(parse_frontmatter(text), dict | BrokenFrontmatter)


NAMES = st.text(min_size=1, max_size=40)


@given(st.dictionaries(NAMES, st.text(st.characters()) | st.integers(-(10**17), 10**17)))
def test_what_we_write_any_yaml_reader_gets_back(fields):
    text, body = split_frontmatter(render_frontmatter(fields) + "body")

    assert yaml.safe_load(text or "") == (fields or None)
    assert parse_frontmatter(text or "") == fields
    assert body == "body"


@pytest.mark.parametrize(
    "value", ["yes", "No", "null", "~", "", " x ", "1", "1.5", "2026-01-01", "a: b", "a #b", "- a",
              "\U0001f600", "\u2028", "\x85", "\ud800", "a\nb", "---", "...", "0x1f", "1e3", "=",
              "<<"]
)  # fmt: skip
def test_a_string_that_looks_like_something_else_stays_a_string(value):
    text, _ = split_frontmatter(render_frontmatter({"a": value}))

    assert yaml.safe_load(text or "") == {"a": value}


def test_simple_values_are_written_bare():
    assert render_frontmatter(FIELDS) == '---\nid: t1\nsummary: "Fix: it"\ncrash_count: 0\n---\n'


# --- writing ------------------------------------------------------------------------------------


def test_what_is_written_is_read(files):
    files.write(T1, FIELDS, "## Context\nx\n")

    found = files.read(T1)

    assert isinstance(found, Readable)
    assert found.body == "## Context\nx\n"
    assert files.shows(found, FIELDS)
    assert files.fields(found) == FIELDS
    assert files.read_at(files.home / "tasks" / "t1") == found


@pytest.mark.parametrize("edited", ["status: done\n", "", None])
def test_a_frontmatter_that_somebody_edited_is_not_ours(files, edited):
    assert not files.shows(Readable(edited, "", ""), FIELDS)


def test_no_frontmatter_has_no_fields(files):
    assert files.fields(Readable(None, "", "")) == {}


def test_writing_replaces_a_link_and_never_follows_it(tmp_path):
    (tmp_path / "other").write_text("untouched")
    (tmp_path / "TASK.md").symlink_to("other")

    write_task_file(tmp_path, FIELDS, "body\n")

    assert (tmp_path / "other").read_text() == "untouched"
    assert not (tmp_path / "TASK.md").is_symlink()
    assert (tmp_path / "TASK.md").stat().st_mode & 0o777 == 0o644
    assert sorted(it.name for it in tmp_path.iterdir()) == ["TASK.md", "other", "user"]


def test_whoever_reads_while_it_is_written_finds_it_whole(tmp_path):
    write_task_file(tmp_path, FIELDS, "0\n" * 500)
    found: list[TaskText] = []
    reader = threading.Thread(
        target=lambda: found.extend(read_task_file(tmp_path) for _ in range(20))
    )
    reader.start()
    number = 0
    while reader.is_alive():
        number += 1
        write_task_file(tmp_path, FIELDS, f"{number}\n" * 500)
    reader.join()

    bodies = [it.body for it in found if isinstance(it, Readable)]
    assert len(bodies) == 20
    assert all(len(set(it.split())) == 1 and it.count("\n") == 500 for it in bodies)
    assert sorted(it.name for it in tmp_path.iterdir()) == ["TASK.md", "user"]


def test_what_cannot_be_read_back_is_not_written(tmp_path):
    write_task_file(tmp_path, FIELDS, "nul \0, half a pair \ud800\n")

    found = read_task_file(tmp_path)

    assert isinstance(found, Readable)
    assert found.body == "nul \ufffd, half a pair ?\n"


def test_a_directory_in_the_way_leaves_no_rest(tmp_path):
    (tmp_path / "TASK.md").mkdir()

    with pytest.raises(Unavailable, match=r"TASK\.md was not written"):
        write_task_file(tmp_path, FIELDS, "body\n")

    assert sorted(it.name for it in tmp_path.iterdir()) == ["TASK.md", "user"]


def test_a_directory_that_is_gone_is_said(tmp_path):
    with pytest.raises(Unavailable, match="not written"):
        write_task_file(tmp_path / "gone", FIELDS, "")


def full_disk(act):
    """Do it in a child whose files cannot grow past 4 KiB; what it raised, by name."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
            act()
            os.write(into, b"nothing")
        except BaseException as error:  # noqa: BLE001
            os.write(into, type(error).__name__.encode())
        finally:
            os.kill(os.getpid(), signal.SIGKILL)  # coverage has no room for its file either
    os.close(into)
    with open(out, "rb") as answer:  # noqa: PTH123
        said = answer.read().decode()
    os.waitpid(child, 0)
    return said


def test_a_full_disk_keeps_the_old_file_and_leaves_no_rest(tmp_path):
    write_task_file(tmp_path, FIELDS, "old\n")

    said = full_disk(lambda: write_task_file(tmp_path, FIELDS, "new\n" * 5000))

    found = read_task_file(tmp_path)
    assert said == "Unavailable"
    assert isinstance(found, Readable)
    assert found.body == "old\n"
    assert sorted(it.name for it in tmp_path.iterdir()) == ["TASK.md", "user"]


# --- history, deletion, ids ---------------------------------------------------------------------


def test_history_grows_line_by_line(files):
    assert files.last_exported(T1) == 0

    files.append_history(T1, ['{"seq": 1}', '{"seq": 2}'])
    files.append_history(T1, [])
    files.append_history(T1, ['{"seq": 5}'])

    assert files.last_exported(T1) == 5
    assert len((files.home / "tasks/t1" / HISTORY).read_text().splitlines()) == 3


def test_a_directory_without_a_history_has_exported_nothing(files):
    files.write(T1, FIELDS, "")

    assert files.last_exported(T1) == 0


def test_a_line_that_a_crash_cut_short_is_taken_back(files):
    files.append_history(T1, ['{"seq": 1}'])
    path = files.home / "tasks/t1" / HISTORY
    path.write_text(path.read_text() + '{"seq": 2')

    before = files.last_exported(T1)
    files.append_history(T1, ['{"seq": 2}'])

    assert before == 1
    assert path.read_text() == '{"seq": 1}\n{"seq": 2}\n'


def test_lines_that_are_no_events_are_passed_over(files):
    files.append_history(T1, ['{"seq": 3}', "[]", "{}", "noise", '{"seq": null}'])

    assert files.last_exported(T1) == 3


def test_a_history_without_an_event_has_exported_nothing(files):
    files.append_history(T1, ["noise"])

    assert files.last_exported(T1) == 0


def test_a_full_disk_leaves_the_history_as_it_was(files):
    files.append_history(T1, ['{"seq": 1}'])

    said = full_disk(lambda: files.append_history(T1, ["x" * 100] * 100))

    assert said == "Unavailable"
    assert (files.home / "tasks/t1" / HISTORY).read_text() == '{"seq": 1}\n'


def test_a_history_that_is_a_link_is_not_followed(files, tmp_path):
    files.write(T1, FIELDS, "")
    (files.home / "tasks/t1" / HISTORY).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(Unavailable):
        files.append_history(T1, ["{}"])

    assert not (tmp_path / "elsewhere").exists()


def test_a_deleted_task_is_moved_and_never_removed(files):
    for number in range(3):
        files.write(T1, FIELDS, f"life {number}\n")
        files.discard(T1)
        files.discard(T1)

    graves = files.home / "deleted"
    assert files.read(T1) == Missing()
    assert sorted(it.name for it in graves.iterdir()) == ["t1-1", "t1-2", "t1-3"]
    assert "life 2" in (graves / "t1-3" / "TASK.md").read_text()


def test_a_home_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "home").write_text("a file")
    files = TaskFiles(tmp_path / "home")

    with pytest.raises(Unavailable, match="was not made"):
        files.write(T1, FIELDS, "")


@pytest.mark.parametrize(
    "id",
    [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "/etc",
        "A",
        "a b",
        "a\n",
        "a\0",
        "\u00e4",
        "x" * 41,
        "a.b",
        "~",
    ],
)
def test_no_path_is_made_of_what_is_no_id(files, id):
    for act in (files.read, files.discard, files.last_exported):
        with pytest.raises(ValueError, match="not a task id"):
            act(TaskId(id))
    with pytest.raises(ValueError, match="not a task id"):
        files.write(TaskId(id), FIELDS, "")

    assert not files.home.exists()


# --- checkpoints --------------------------------------------------------------------------------


def checkpoints(directory: Path) -> list[str]:
    return sorted(it.name for it in directory.iterdir())


def test_the_newest_checkpoints_of_a_task_are_kept(tmp_path):
    place = tmp_path / "checkpoints"
    numbers = [add_checkpoint(place, {"work_summary": str(it)}) for it in range(KEPT + 3)]

    assert numbers == list(range(1, KEPT + 4))
    assert checkpoints(place) == [f"{it:03}.json" for it in range(4, KEPT + 4)]
    assert (last_checkpoint(place) or {})["work_summary"] == str(KEPT + 2)


def test_a_checkpoint_gets_a_number_above_those_of_other_hosts(tmp_path):
    place = tmp_path / "checkpoints"

    assert [add_checkpoint(place, {}, above=it) for it in (7, 3, 8)] == [8, 9, 10]


def test_the_checkpoints_of_a_task_have_a_bounded_size_together(tmp_path):
    place = tmp_path / "checkpoints"
    for _ in range(40):
        add_checkpoint(place, {"files_modified": ["x" * 1000] * 900})

    assert sum(it.stat().st_size for it in place.iterdir()) <= KEPT_BYTES
    assert checkpoints(place)[-1] == "040.json"


def test_one_checkpoint_that_is_too_large_is_cut_short_and_says_so(tmp_path):
    place = tmp_path / "checkpoints"
    add_checkpoint(place, {"work_summary": "y" * 5_000_000, "files_modified": ["z" * 500] * 50_000})

    found = last_checkpoint(place) or {}
    assert (place / "001.json").stat().st_size <= ONE_BYTES
    assert "left out" in str(found["work_summary"])
    assert found["files_left_out"]


def test_what_a_killed_writer_left_beside_the_file_goes_with_the_next_write(tmp_path) -> None:
    dead = subprocess.Popen(("true",))
    dead.wait()
    left, alive = f".TASK.md.{dead.pid}.0a1b2c3d", f".TASK.md.{os.getpid()}.0a1b2c3d"
    for name in (left, alive):
        (tmp_path / name).write_text("half")

    write_task_file(tmp_path, {"id": "a"}, "text\n")

    assert {it.name for it in tmp_path.iterdir()} >= {"TASK.md", alive}
    assert not (tmp_path / left).exists()
