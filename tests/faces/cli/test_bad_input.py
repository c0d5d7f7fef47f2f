"""Bad input: each is refused in three parts, with exit 1 or 2, and changes nothing."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
import yaml

from lockgate.core.model.task import Status
from tests.faces.naughty import BRANCHES, NAUGHTY, some_of
from tests.faces.shell import CONFIG, FAIL, HANDOFF, PASS, Shell, a_shell, commit_config

pytestmark = pytest.mark.unmeasured

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
S = Status


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory, configured: Path) -> Shell:
    """Shared by tests that must change nothing: one task pending, one working."""
    shell = a_shell(tmp_path_factory.mktemp("still"), configured)
    shell.create("wait-here")
    shell.bring(shell.create("work-here"), S.WORKING)
    return shell


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory, configured: Path) -> Shell:
    """Shared by tests that may make a task."""
    shell = a_shell(tmp_path_factory.mktemp("growing"), configured)
    shell.create("wait-here")
    return shell


def at_work(shell: Shell, status: Status = S.WORKING):
    id = shell.create()
    shell.bring(id, status)
    return id


def short(value: object) -> str:
    return ascii(value)[:40]


# --- naughty strings ----------------------------------------------------------------------------


def test_there_are_enough_naughty_strings():
    assert len(NAUGHTY) >= 120
    assert len(BRANCHES) >= 120


BY_ID = (
    ("task", "show"),
    ("task", "delete"),
    ("task", "update", "--status", "cancelled"),
    ("events",),
)
MORE_BY_ID = (
    ("task", "why"),
    ("task", "log"),
    ("task", "complete"),
    ("task", "cancel"),
    ("task", "update", "--summary", "Mine"),
    ("resume",),
    ("task", "list", "--after"),
)


@pytest.mark.parametrize("name", some_of(NAUGHTY))
def test_a_naughty_id_names_no_task(still, name):
    before = still.traces()

    for argv in BY_ID:
        answer = still.run(*argv, "--", name)

        assert answer.why
        assert not UNSAFE.search(answer.err)
    assert still.traces() == before


@pytest.mark.parametrize("argv", MORE_BY_ID, ids=" ".join)
def test_no_command_takes_a_naughty_id(still, argv):
    before = still.traces()
    end = () if argv[-1] == "--after" else ("--",)

    for name in (
        "",
        " ",
        "..",
        "../../etc/passwd",
        "-x",
        "%",
        "'; --",
        "\x1b[31m",
        "\udcff",
        "a" * 300,
    ):
        answer = still.run(*argv, *end, name)

        assert answer.why
        assert not UNSAFE.search(answer.err)
    assert still.traces() == before


@pytest.mark.parametrize("name", some_of(BRANCHES))
def test_a_naughty_branch_is_refused_or_gives_a_task_with_an_honest_id(growing, name):
    before = growing.traces()

    answer = growing.run("task", "create", "--", name, "Fix it")

    if answer.code:
        assert "is not a name that git takes for a branch" in answer.why
        assert not UNSAFE.search(answer.err)
        assert growing.traces() == before
        return
    id = answer.out.strip()
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,34}-[0-9a-f]{4}", id)
    assert growing.facts(id)["branch"] == name
    assert (
        yaml.safe_load(growing.file(id).read_text(encoding="utf-8").split("---\n")[1])["branch"]
        == name
    )


HOPELESS = (
    "",
    "-x",
    "..",
    "a b",
    "x..y",
    "x.lock",
    "@{",
    "x\ny",
    "\x1b",
    "\u202e",
    "\udcff",
    "HEAD^",
    "x/",
    "/x",
)


@pytest.mark.parametrize("name", HOPELESS, ids=short)
def test_a_name_that_git_takes_for_no_branch_is_refused(still, name):
    before = still.traces()

    answer = still.run("task", "create", "--", name, "Fix it")

    assert answer.code == 1
    assert answer.why
    assert still.traces() == before


@pytest.mark.parametrize("text", some_of(NAUGHTY))
def test_a_naughty_summary_is_refused_or_kept_as_it_is_and_shown_safely(still, text):
    before = still.traces()

    answer = still.run("task", "update", "work-here", f"--summary={text}")

    assert not UNSAFE.search(answer.out + answer.err)
    if answer.code:
        assert answer.why
        assert still.traces() == before
        return
    facts = still.facts("work-here")
    front = Path(facts["file"]).read_text(encoding="utf-8").split("---\n")[1]
    assert facts["summary"] == yaml.safe_load(front)["summary"] == text.strip()
    assert facts["trouble"] is None
    assert not UNSAFE.search(still.did("task", "list"))


BAD_SUMMARIES = ("", " \u00a0", "x\ny", "x\x1b[31m", "\x9b2J", "x\u2028y", "\u202eover", "a" * 201)


@pytest.mark.parametrize("text", BAD_SUMMARIES, ids=short)
def test_a_summary_that_is_no_line_is_refused_when_a_task_is_made(still, text):
    before = still.traces()

    answer = still.run("task", "create", "fix", "--", text)

    assert "the summary" in answer.why
    assert still.traces() == before


@pytest.mark.parametrize("text", ["x\udcff", "\ud800"], ids=short)
@pytest.mark.parametrize("option", ["--directive", "--reason", "--summary"])
def test_text_that_no_database_keeps_is_refused(shell, option, text):
    id = shell.create()
    before = shell.traces()

    answer = shell.run("task", "update", id, "--status", "working", option, text)

    assert answer.code == 1
    assert answer.why
    assert shell.traces() == before


def test_an_imported_summary_that_no_database_keeps_is_refused(still, tmp_path):
    (tmp_path / "TASK.md").write_text('---\nsummary: "\\ud800"\nbranch: fix-it\n---\n')
    before = still.traces()

    answer = still.run("task", "import", str(tmp_path))

    assert answer.code == 1
    assert answer.why
    assert still.traces() == before


def test_bytes_that_are_not_utf_8_are_refused_by_the_program_in_any_locale(shell):
    shell.create()
    before = shell.traces()
    strict = {"PYTHONIOENCODING": "utf-8:strict"}

    answers = [
        shell.program("task", "import", b"/tmp/\xff", "--json", env=strict),
        shell.program("task", "create", b"fix\xff", "Fix it", "--json", env=strict),
        shell.program("task", "show", b"\xff", "--json", env=strict),
    ]

    assert [it.code for it in answers] == [1, 1, 1]
    assert all(it.facts["error"]["why"] for it in answers)
    assert shell.traces() == before


# --- moves --------------------------------------------------------------------------------------

MAP = {
    S.PENDING: {S.WORKING, S.CLARIFICATION, S.CANCELLED},
    S.CLARIFICATION: {S.WORKING, S.CANCELLED},
    S.WORKING: {S.AGENT_REVIEW, S.CLARIFICATION, S.STUCK, S.CANCELLED},
    S.AGENT_REVIEW: {S.REVIEWING, S.WORKING, S.STUCK, S.CANCELLED},
    S.REVIEWING: {S.DONE, S.CANCELLED},
    S.STUCK: {S.WORKING, S.AGENT_REVIEW, S.CANCELLED},
    S.PAUSED_FOR_INTERVENTION: {S.PENDING, S.CANCELLED},
    S.DONE: set(),
    S.CANCELLED: set(),
}


@pytest.mark.req("R67", "R84")
@pytest.mark.parametrize("status", MAP)
@pytest.mark.parametrize("force", [(), ("--force", "--reason", "I say so")], ids=["", "forced"])
def test_a_move_outside_the_map_prints_why_changes_nothing_and_exits_1(shell, status, force):
    id = at_work(shell, status)
    before = shell.traces()

    for target in set(Status) - MAP[status]:
        answer = shell.run("task", "update", id, "--status", target, *force)

        assert answer.code == 1
        stays = f"stays {status}, not {target}"
        assert f"task {id} {'was not moved' if target is status else stays}: " in answer.why
    assert shell.traces() == before


@pytest.mark.req("R67")
def test_the_program_itself_exits_1_for_a_move_outside_the_map(shell):
    id = shell.create()
    before = shell.traces()

    answer = shell.program("task", "update", id, "--status", "done")

    assert answer.code == 1
    assert (
        "a task that is pending can only become working or clarification or cancelled" in answer.why
    )
    assert shell.traces() == before


@pytest.mark.parametrize(
    "word", ["", "nosuch", "Working ", "wörking", "pending\n", "0", "--", "WORKING;"]
)
def test_a_status_that_is_none_is_a_wrong_usage_that_names_those_there_are(still, word):
    before = still.traces()

    answer = still.run("task", "update", "work-here", f"--status={word}")

    assert answer.code == 2
    assert all(status in answer.why for status in Status)
    assert still.traces() == before


@pytest.mark.parametrize("reason", [(), ("--reason", ""), ("--reason", " ")], ids=short)
def test_force_without_a_reason_is_a_wrong_usage(still, reason):
    before = still.traces()

    answer = still.run(
        "task", "update", "work-here", "--status", "agent-review", "--force", *reason
    )

    assert answer.code == 2
    assert "--force needs --reason" in answer.why
    assert still.traces() == before


def test_force_is_no_substitute_for_a_proof(shell):
    shell.git("checkout", "--quiet", "-b", "unmerged")
    shell.git("commit", "--quiet", "--allow-empty", "--message", "Work")
    (shell.repo / "new.py").write_text("new\n", encoding="utf-8")
    shell.git("add", "new.py")
    shell.git("commit", "--quiet", "--message", "More work")
    shell.git("checkout", "--quiet", "main")
    id = shell.create("unmerged")
    shell.bring(id, S.REVIEWING)
    before = shell.traces()

    answer = shell.run("task", "update", id, "--status", "done", "--force", "--reason", "trust me")

    assert "branch unmerged is not in the target branch" in answer.why
    assert shell.traces() == before


HANDOFFS = {
    "no section": ("", "no '## Handoff' section"),
    "empty": ("\n## Handoff\n", "with nothing in it"),
    "blank": ("\n## Handoff\n\n \t\n", "with nothing in it"),
    "a comment": ("\n## Handoff\n<!-- DONE: all -->\n", "with nothing in it"),
    "empty twice": ("\n## Handoff\n\n## Handoff\n", "with nothing in it"),
    "in a fence": ("\n```\n## Handoff\nDONE\n```\n", "no '## Handoff' section"),
    "in a tilde fence": ("\n~~~md\n## Handoff\nDONE\n~~~\n", "no '## Handoff' section"),
    "in an open fence": ("\n```\n## Handoff\nDONE\n", "no '## Handoff' section"),
    "in a comment": ("\n<!--\n## Handoff\nDONE\n-->\n", "no '## Handoff' section"),
    "in a quote": ("\n> ## Handoff\n> DONE\n", "no '## Handoff' section"),
    "indented": ("\n    ## Handoff\n    DONE\n", "no '## Handoff' section"),
    "another level": ("\n### Handoff\nDONE\n", "no '## Handoff' section"),
    "no space": ("\n##Handoff\nDONE\n", "no '## Handoff' section"),
    "another word": ("\n## Handoffs\nDONE\n", "no '## Handoff' section"),
    "look-alike": ("\n## H\u0430ndoff\nDONE\n", "no '## Handoff' section"),
}  # the last one has a Cyrillic letter


@pytest.mark.req("R67", "R68", "R77", "R78")
@pytest.mark.parametrize("kind", HANDOFFS)
def test_work_is_not_handed_on_without_a_handoff_that_counts(shell, kind):
    text, why = HANDOFFS[kind]
    id = at_work(shell)
    shell.write(id, text)
    before = shell.traces()

    by_complete = shell.run("task", "complete", id)
    by_update = shell.run("task", "update", id, "--status", "agent-review")

    assert by_complete == by_update
    assert by_complete.code == 1
    assert why in by_complete.why
    assert shell.traces() == before


@pytest.mark.req("R68")
@pytest.mark.parametrize(
    "text",
    [HANDOFF, "\n## Handoff ##\nDONE\n", "\n   ## Handoff\nDONE\n", "\r\n## Handoff\r\nDONE\r\n"],
    ids=short,
)
def test_a_handoff_as_commonmark_has_it_counts(shell, text):
    id = at_work(shell)
    with shell.file(id).open("ab") as file:
        file.write(text.encode())

    assert shell.run("task", "complete", id).code == 0


REVIEWS = {
    "no section": "",
    "empty": "\n## Review\n",
    "prose": "\n## Review\nOn a first pass this looks good.\n",
    "would pass": "\n## Review\nThis would PASS if the tests were green.\n",
    "both words": "\n## Review\nPASS or FAIL\n",
    "in a fence": "\n## Review\n```\nPASS\n```\n",
    "in a quote": "\n## Review\n> PASS\n",
    "in a comment": "\n## Review\n<!-- PASS -->\nfine\n",
    "look-alike": "\n## Review\nP\u0410SS\n",
    "cut short": "\n## Review\nPASS",
    "twice": PASS + PASS,
    "passed": "\n## Review\nPASSED\n",
    "a failure": FAIL,
}


@pytest.mark.req("R69", "R78")
@pytest.mark.parametrize("kind", REVIEWS)
def test_no_task_passes_its_review_without_a_verdict_that_says_so(shell, kind):
    id = at_work(shell, S.AGENT_REVIEW)
    shell.write(id, REVIEWS[kind])
    before = shell.traces()

    answer = shell.run("task", "update", id, "--status", "reviewing")

    assert answer.code == 1
    assert answer.why
    assert shell.traces() == before


# --- a TASK.md that is none ---------------------------------------------------------------------


def large(file: Path) -> None:
    with file.open("r+b") as it:
        it.truncate(50 * 1024 * 1024)


def linked(file: Path) -> None:
    file.rename(file.parent.parent / "real.md")
    file.symlink_to(file.parent.parent / "real.md")


def linked_directory(file: Path) -> None:
    file.parent.rename(file.parent.parent / "real")
    file.parent.symlink_to(file.parent.parent / "real")


def hard_linked(file: Path) -> None:
    os.link(file, file.parent.parent / "other.md")


def dangling(file: Path) -> None:
    file.unlink()
    file.symlink_to("/nowhere")


def fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_socket(file: Path) -> None:
    file.unlink()
    here = Path.cwd()
    os.chdir(file.parent)  # a socket's path must be short
    with closing(socket.socket(socket.AF_UNIX)) as it:
        it.bind(file.name)
    os.chdir(here)


def not_utf_8(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\xff\xfe\n")


def with_a_nul(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0\n")


def gone(file: Path) -> None:
    file.unlink()


UNREADABLE = {
    large: "52428800 bytes",
    linked: "it is a link",
    linked_directory: "its directory is a link",
    hard_linked: "a second name",
    dangling: "it is a link",
    fifo: "not a regular file",
    directory: "not a regular file",
    a_socket: "it is a socket",
    not_utf_8: "is not UTF-8",
    with_a_nul: "a NUL byte",
    gone: "TASK.md is missing",
}


@pytest.mark.req("R76", "R78")
@pytest.mark.parametrize("spoil", UNREADABLE, ids=lambda it: it.__name__)
def test_a_task_md_that_is_no_honest_file_is_shown_as_broken_and_moves_nothing(shell, spoil):
    id = at_work(shell)
    shell.write(id, HANDOFF)
    spoil(shell.file(id))
    before = shell.traces()

    answer = shell.run("task", "complete", id)
    listed, shown = shell.did("task", "list"), shell.did("task", "show", id)
    rows = json.loads(shell.did("task", "list", "--json"))["rows"]

    assert answer.code == 1
    assert UNREADABLE[spoil] in answer.why
    assert id in listed
    assert UNREADABLE[spoil] in shown
    assert [it["id"] for it in rows] == [id]
    assert "not yet" in shell.did("task", "why", id)
    assert shell.traces() == before


BROKEN = {
    "not YAML": "---\nid: [\n---\n",
    "never closed": "---\nid: x\n",
    "none": "",
    "a bomb": "---\na: &a [x]\nb: *a\n---\n",
    "a tag": "---\nid: !!python/object/apply:os.system ['true']\n---\n",
    "two documents": "---\nid: x\n... \n%YAML 1.1\n---\n",
    "long": "---\n" + "x: y\n" * 10_000 + "---\n",
    "tabs": "---\n\tid: x\n---\n",
    "control characters": "---\nid: \x01\n---\n",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_frontmatter_hides_no_task_and_the_next_move_mends_it(shell, kind):
    id = at_work(shell)
    shell.file(id).write_text(BROKEN[kind] + HANDOFF, encoding="utf-8")
    before = shell.traces()

    listed, shown = shell.did("task", "list"), shell.did("task", "show", id)

    assert id in listed
    assert "TASK.md's frontmatter" in shown
    assert shell.traces() == before
    shell.did("task", "cancel", id)
    assert "trouble:" not in shell.did("task", "show", id)


# --- import of nonsense -------------------------------------------------------------------------

GOOD = "summary: Fix it\nbranch: fix-it\n"
NONSENSE = {
    "empty": b"",
    "binary": bytes(range(256)) * 16,
    "an executable": b"\x7fELF\x02\x01\x01\0" + b"\0" * 100,
    "latin 1": f"---\n{GOOD}---\nGr\xfc\xdfe\n".encode("latin-1"),
    "a NUL": f"---\n{GOOD}---\n\0\n".encode(),
    "no frontmatter": b"## Context\n",
    "not YAML": b"---\nsummary: [\n---\n",
    "a list": b"---\n- summary\n- branch\n---\n",
    "a word": b"---\nsummary\n---\n",
    "no summary": b"---\nbranch: fix-it\n---\n",
    "no branch": b"---\nsummary: Fix it\n---\n",
    "an alias bomb": b"---\na: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n" + GOOD.encode() + b"---\n",
    "a tag": b"---\nsummary: !!python/name:os.system\nbranch: x\n---\n",
    "twice the same": f"---\n{GOOD}summary: Again\n---\n".encode(),
    "two documents": f"---\n{GOOD}--- # two\nsummary: x\n---\n".encode(),
    "deep": b"---\nsummary: " + b"[" * 5000 + b"]" * 5000 + b"\nbranch: x\n---\n",
    "a long frontmatter": f"---\n{GOOD}note: {'x' * 20_000}\n---\n".encode(),
    "a number as summary": b"---\nsummary: 7\nbranch: fix-it\n---\n",
    "a list as branch": b"---\nsummary: Fix it\nbranch: [a, b]\n---\n",
    "a null": b"---\nsummary: null\nbranch: fix-it\n---\n",
    "a bad branch": b"---\nsummary: Fix it\nbranch: ../../x\n---\n",
    "an option as branch": b"---\nsummary: Fix it\nbranch: --upload-pack=x\n---\n",
    "an unknown status": f"---\n{GOOD}status: nosuch\n---\n".encode(),
    "a list as status": f"---\n{GOOD}status: [working]\n---\n".encode(),
    "a negative count": f"---\n{GOOD}crash_count: -1\n---\n".encode(),
    "half a count": f"---\n{GOOD}crash_count: 1.5\n---\n".encode(),
    "a word as count": f"---\n{GOOD}review_round: many\n---\n".encode(),
    "true as count": f"---\n{GOOD}iteration: true\n---\n".encode(),
    "an endless count": f"---\n{GOOD}iteration: {'9' * 17}\n---\n".encode(),
    "more digits than that": f"---\n{GOOD}iteration: {'9' * 5000}\n---\n".encode(),
    "a long summary": f"---\nsummary: {'x' * 201}\nbranch: fix-it\n---\n".encode(),
    "a summary of two lines": b'---\nsummary: "a\\nb"\nbranch: fix-it\n---\n',
    "a summary with escapes": b'---\nsummary: "\\e[31m"\nbranch: fix-it\n---\n',
    "control characters": b"---\nsummary: \x01\nbranch: fix-it\n---\n",
    "a large file": f"---\n{GOOD}---\n".encode() + b"x" * (1024 * 1024),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_is_not_imported(still, tmp_path, kind):
    (tmp_path / "TASK.md").write_bytes(NONSENSE[kind])
    before = still.traces()

    by_file, by_directory = (
        still.run("task", "import", str(tmp_path / it)) for it in ("TASK.md", ".")
    )

    assert by_file == by_directory
    assert by_file.code == 1
    assert "the task was not imported" in by_file.why
    assert still.traces() == before


@pytest.mark.parametrize(
    "id", ["../../etc/x", "a/b", "", "A", "x" * 41, "-x", "x y", "7", "[a]", "'\\e[31m'"], ids=short
)
def test_an_imported_id_that_is_none_is_replaced_by_one_made_from_the_branch(shell, tmp_path, id):
    (tmp_path / "TASK.md").write_text(f"---\nid: {id}\n{GOOD}---\n", encoding="utf-8")

    made = shell.did("task", "import", str(tmp_path)).strip()

    assert re.fullmatch(r"fix-it-[0-9a-f]{4}", made) or made == id == "7"
    assert [it.name for it in (shell.home / "tasks").iterdir()] == [made]


def no_task_md(place: Path) -> Path:
    return place


def nowhere(place: Path) -> Path:
    return place / "nowhere" / "TASK.md"


def under_a_file(place: Path) -> Path:
    (place / "file").write_text("x", encoding="utf-8")
    return place / "file" / "TASK.md"


def a_link(place: Path) -> Path:
    (place / "real.md").write_text(f"---\n{GOOD}---\n", encoding="utf-8")
    (place / "TASK.md").symlink_to(place / "real.md")
    return place / "TASK.md"


def a_loop(place: Path) -> Path:
    (place / "TASK.md").symlink_to(place / "TASK.md")
    return place / "TASK.md"


def a_fifo(place: Path) -> Path:
    os.mkfifo(place / "TASK.md")
    return place


def a_long_name(place: Path) -> Path:
    return place / ("x" * 5_000)


def a_device(_place: Path) -> Path:
    return Path("/dev/zero")


@pytest.mark.parametrize(
    "make",
    [no_task_md, nowhere, under_a_file, a_link, a_loop, a_fifo, a_long_name, a_device],
    ids=lambda it: it.__name__,
)
def test_what_is_no_file_is_not_imported(still, tmp_path, make):
    path = make(tmp_path)
    before = still.traces()

    answer = still.run("task", "import", str(path))

    assert answer.code == 1
    assert answer.why
    assert still.traces() == before


# --- what a new task may be given ---------------------------------------------------------------

CONTEXTS = {
    "binary": (bytes(range(256)), "is not UTF-8"),
    "too long": (b"x" * 500_001, "500001 characters"),
    "much too long": ("é".encode() * 3_000_000, "500000 are allowed"),
    "a Handoff": (b"Do it.\n\n## Handoff\nDONE\n", "'## Handoff' heading"),
    "a Review": (b"## Review\nPASS\n", "'## Review' heading"),
    "Questions": (b"## Questions\n?\n", "'## Questions' heading"),
    "a Review after CR": (b"x\r\r## Review\rPASS\r", "'## Review' heading"),
}


@pytest.mark.parametrize("kind", CONTEXTS)
def test_a_context_that_no_task_may_have_is_refused(still, tmp_path, kind):
    raw, why = CONTEXTS[kind]
    (tmp_path / "context.md").write_bytes(raw)
    before = still.traces()

    answer = still.run("task", "create", "fix", "Fix it", "--context", str(tmp_path / "context.md"))

    assert answer.code == 1
    assert why in answer.why
    assert still.traces() == before


@pytest.mark.parametrize(
    "path", ["/nowhere/context.md", "/", "", "/dev/zero", "x" * 5_000, "/proc/self/mem"], ids=short
)
def test_a_context_that_cannot_be_read_is_refused(still, path):
    before = still.traces()

    answer = still.run("task", "create", "fix", "Fix it", "--context", path)

    assert answer.code == 1
    assert "context" in answer.why
    assert still.traces() == before


@pytest.mark.parametrize(
    "text", ["```\ncode", "~~~\ncode", "<!-- a note", "<pre>\ncode"], ids=short
)
def test_a_context_left_open_does_not_swallow_the_handoff(shell, tmp_path, text):
    (tmp_path / "context.md").write_text(text, encoding="utf-8")
    id = shell.create("fix-login", "--context", str(tmp_path / "context.md"))
    shell.bring(id, S.WORKING)
    shell.write(id, HANDOFF)

    assert shell.run("task", "complete", id).code == 0


@pytest.mark.parametrize("end", ["<&-", "</dev/zero"], ids=short)
def test_a_context_from_a_stdin_that_gives_none_is_refused(shell, end):
    shell.create()
    before = shell.traces()
    command = f'exec "{sys.executable}" -m lockgate task create fix "Fix it" --context - {end}'

    done = subprocess.run(
        ["sh", "-c", command],
        cwd=shell.repo,
        env=shell.environment(),
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith(b"the task was not created: ")
    assert shell.traces() == before


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (("--priority", "0"), 1, "priority 0 is not one of 1 (first) to 5 (last)"),
        (("--priority", "6"), 1, "priority 6"),
        (("--priority", "-1"), 1, "priority -1"),
        (("--priority", "9" * 40), 1, "priority 999"),
        (("--priority", "high"), 2, "'high' is not a valid integer"),
        (("--priority", "1.5"), 2, "is not a valid integer"),
        (("--depends-on", "nosuch"), 1, "task 'nosuch' was not found"),
        (("--depends-on", ""), 1, "task '' was not found"),
        (("--depends-on", "w"), 1, "several ids begin so"),
        (("--agent", "nosuch"), 1, "no agent is called 'nosuch'"),
        (("--agent", ""), 1, "no agent is called ''"),
        (("--agent", "\x1b[31m"), 1, "no agent is called"),
        (("extra",), 2, "unexpected extra argument"),
    ],
    ids=short,
)
def test_a_new_task_with_a_bad_option_is_not_made(still, argv, code, why):
    before = still.traces()

    answer = still.run("task", "create", "fix", "Fix it", *argv)

    assert answer.code == code
    assert why in answer.why
    assert still.traces() == before


# --- the configuration --------------------------------------------------------------------------

CONFIGS = {
    "an unknown table": ("[nosuch]\n", ("line 1", "nosuch is not a key")),
    "an unknown key": ("[project]\nslot = 3\n", ("line 2", "project.slot", "did you mean slots?")),
    "a wrong type": ('[project]\nslots = "3"\n', ("line 2", "project.slots", "'3'", "integer")),
    "out of range": (
        "[limits]\ncrashes = 0\n",
        ("line 2", "limits.crashes", "0", "greater than or equal to 1"),
    ),
    "a word not known": (
        '[merge]\nmode = "yolo"\n',
        ("line 2", "merge.mode", "'yolo'", "manual", "auto"),
    ),
    "no such formula": ('[gates]\nformula = "x"\n', ("line 2", "gates.formula", "'x'", "solo")),
    "no such agent": ('[project]\nagent = "x"\n', ("line 2", "'x'", "claude")),
    "no command": ('[gates]\nformula = "solo"\n', ("commands", "test")),
    "not TOML": ("[project\n", ("it is not TOML", "line 1")),
    "a when that does not parse": (
        CONFIG + 'when = "task.priority =="\n',
        ("line 11", "gate review", "when"),
    ),
    "a when of unknown names": (
        CONFIG + 'when = "nosuch.priority == 1"\n',
        ("line 11", "when", "nosuch"),
    ),
    "a when that is no yes or no": (CONFIG + 'when = "task.priority"\n', ("line 11", "when")),
    "two gates of a name": (
        CONFIG + '[[gates.list]]\nname = "review"\ntype = "human"\n',
        ("review",),
    ),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_bad_configuration_on_base_names_key_value_line_and_what_is_allowed(shell, kind):
    text, words = CONFIGS[kind]
    waiting = shell.create()
    commit_config(shell, text)
    before = shell.traces()

    made = shell.run("task", "create", "fix", "Fix it")
    begun = shell.run("task", "update", waiting, "--status", "working")

    assert (made.code, begun.code) == (2, 1)
    for word in (".lockgate/config.toml on main", *words):
        assert word in made.why
        assert word in begun.why
    assert shell.traces() == before


def test_a_configuration_that_is_not_on_base_does_not_count(shell):
    (shell.repo / ".lockgate/config.toml").write_text("[nosuch]\n", encoding="utf-8")
    shell.git("checkout", "--quiet", "-b", "other")
    shell.git("commit", "--quiet", "--all", "--message", "Break it")

    assert shell.facts(shell.create())["agent"] == "scripted"


def test_a_task_that_has_started_keeps_its_rules_when_the_configuration_breaks(shell):
    id = at_work(shell)
    shell.write(id, HANDOFF)
    commit_config(shell, "[nosuch]\n")

    assert shell.run("task", "complete", id).code == 0


# --- where there is no repository ---------------------------------------------------------------

IN_A_REPOSITORY = (
    ("task", "list"),
    ("task", "create", "fix", "Fix it"),
    ("task", "import", "."),
    ("init",),
    (),
)


@pytest.mark.parametrize("argv", IN_A_REPOSITORY, ids=" ".join)
def test_outside_of_a_repository_no_project_is_found(still, tmp_path, argv):
    before = still.traces()

    answer = still.run(*argv, cwd=tmp_path)

    assert answer.code == 1
    assert "is not inside a git repository" in answer.why
    assert list(tmp_path.glob("*/.lockgate")) == []
    assert still.traces() == before


def test_outside_of_a_repository_a_task_can_still_be_named(shell, tmp_path):
    id = at_work(shell)

    assert shell.run("task", "show", id, cwd=tmp_path).code == 0
    assert shell.run("task", "update", id, "--status", "stuck", cwd=tmp_path).code == 0
    assert id in shell.did("task", "list", "--all", cwd=tmp_path)


def test_a_repository_without_a_commit_has_no_configuration_to_trust(tmp_path):
    shell = Shell(tmp_path / "empty")
    shell.repo.mkdir()
    shell.git("init", "--quiet", "--initial-branch=main")
    shell.did("task", "list")
    before = shell.rows()

    answer = shell.run("task", "create", "fix", "Fix it")

    assert answer.code == 2
    assert "no branch has a commit yet" in answer.why
    assert shell.rows() == before


def test_a_bare_repository_is_not_set_up(tmp_path, configured):
    shell = Shell(tmp_path / "bare")
    subprocess.run(
        ["git", "clone", "--quiet", "--bare", str(configured), str(shell.repo)], check=True
    )
    shell.did("task", "list")
    before = shell.traces()

    answer = shell.run("init", "--force")

    assert "it is bare" in answer.why
    assert shell.traces() == before
    assert shell.status(shell.create()) is S.PENDING


@pytest.mark.parametrize(
    "argv",
    [("init", "--force", "--agent", "codex"), ("task", "create", "fix", "Fix it")],
    ids=" ".join,
)
def test_a_git_hook_does_not_point_us_elsewhere(shell, tmp_path, configured, argv):
    other = a_shell(tmp_path / "other", configured)
    before = other.traces()
    hook = {
        "GIT_DIR": str(other.repo / ".git"),
        "GIT_WORK_TREE": str(other.repo),
        "GIT_INDEX_FILE": str(other.repo / ".git/index"),
        "GIT_COMMON_DIR": str(other.repo / ".git"),
        "GIT_OBJECT_DIRECTORY": str(other.repo / ".git/objects"),
        "GIT_PREFIX": "",
    }

    answer = shell.program(*argv, env=hook)

    assert answer.code == 0, answer
    assert other.traces() == before
    projects = shell.rows()["projects"]
    assert all(str(other.repo) not in str(row) for row in projects)
    assert argv[0] != "init" or "codex" in shell.git("show", "main:.lockgate/config.toml")


def test_a_machine_without_git_is_told_to_install_it(shell, tmp_path):
    shell.create()
    before = shell.traces()

    answer = shell.program("task", "create", "fix", "Fix it", env={"PATH": str(tmp_path)})

    assert answer.code == 1
    assert "install git" in answer.why
    assert shell.traces() == before


def test_a_directory_that_is_gone_is_no_bug_of_ours(shell, tmp_path):
    (tmp_path / "gone").mkdir()
    command = f'rmdir "$PWD" && exec "{sys.executable}" -P -m lockgate task list'

    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path / "gone",
        env=shell.environment(),
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert b"bug" not in done.stderr


# --- the home -----------------------------------------------------------------------------------


def test_a_database_that_another_process_holds_is_waited_for_and_then_named(shell):
    id = shell.create()
    before = shell.traces()

    with closing(sqlite3.connect(shell.home / "lockgate.db", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        reading = shell.program("task", "show", id)
        begun = time.monotonic()
        writing = shell.program("task", "update", id, "--status", "working")
        waited = time.monotonic() - begun

    assert reading.code == 0
    assert writing.code == 1
    assert "locked by another process" in writing.why
    assert waited >= 5
    assert shell.traces() == before
    assert shell.program("task", "update", id, "--status", "working").code == 0


def test_a_database_of_a_newer_schema_is_left_alone(shell):
    id = shell.create()
    with closing(sqlite3.connect(shell.home / "lockgate.db")) as db:
        db.execute("PRAGMA user_version = 999")
        db.execute("UPDATE schema_facts SET readable_from = 999")
        db.commit()
    before = shell.traces()

    for argv in (("task", "list"), ("task", "cancel", id), ("events",)):
        answer = shell.run(*argv)

        assert answer.code == 1
        assert "its schema is version 999" in answer.why
    assert shell.traces() == before


def test_a_database_of_an_older_schema_is_brought_up_to_date(shell):
    shell.home.mkdir()
    with closing(sqlite3.connect(shell.home / "lockgate.db")) as db:
        db.execute("PRAGMA user_version = 0")

    assert shell.create() in shell.did("task", "list")


def garbage(path: Path) -> None:
    path.write_bytes(b"this is not a database, and it never was one\n" * 100)


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def overwritten(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[:4096] + b"\xff" * (len(raw) - 4096))


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil", [garbage, torn, overwritten, a_directory], ids=lambda it: it.__name__
)
def test_a_file_that_is_no_database_is_named_and_left_alone(shell, spoil):
    id = shell.create()
    spoil(shell.home / "lockgate.db")
    whole = None if spoil is a_directory else (shell.home / "lockgate.db").read_bytes()

    for argv in (("task", "list"), ("task", "create", "fix", "Fix it"), ("task", "cancel", id)):
        answer = shell.run(*argv)

        assert answer.code == 1
        assert str(shell.home / "lockgate.db") in answer.why
    assert whole is None or (shell.home / "lockgate.db").read_bytes() == whole


@pytest.mark.parametrize("home", ["file", "file/below", "/dev/null/x", "/proc/lockgate"])
def test_a_home_that_cannot_be_is_named(shell, tmp_path, home):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    shell.home = tmp_path / home

    answer = shell.run("task", "create", "fix", "Fix it")

    assert answer.code == 1
    assert str(shell.home) in answer.why
    assert (tmp_path / "file").read_text(encoding="utf-8") == "x"


@contextmanager
def a_small_disk(place: Path, size: str):
    """A file system of its own, which only root can mount."""
    place.mkdir(parents=True, exist_ok=True)
    argv = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(argv, check=False, capture_output=True).returncode:
        pytest.skip("needs root: a file system of its own cannot be mounted")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(place: Path) -> Path:
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return filler


def test_a_full_disk_is_named_and_nothing_is_changed(shell):
    with a_small_disk(shell.home, "2m") as disk:
        id = shell.create()
        before = shell.traces()
        filler = fill(disk)

        answers = [
            shell.program("task", "update", id, "--status", "working"),
            shell.program("task", "create", "fix", "Fix it"),
        ]

        filler.unlink()
        for answer in answers:
            assert answer.code == 1
            assert str(disk) in answer.why
        assert shell.traces() == before
        assert shell.program("task", "update", id, "--status", "working").code == 0


def test_a_read_only_home_is_named_and_nothing_is_changed(shell):
    with a_small_disk(shell.home, "2m") as disk:
        id = shell.create()
        before = shell.traces()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)

        answer = shell.program("task", "update", id, "--status", "working")

        assert answer.code == 1
        assert str(disk) in answer.why
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        assert shell.traces() == before


def test_a_move_whose_file_could_not_be_written_is_made_good_by_the_next_command(shell):
    """The row is the truth: the file is its mirror, and is written when it can be."""
    with a_small_disk(shell.home, "2m") as disk:
        there = {"LOCKGATE_DATABASE": str(shell.place / "elsewhere.db")}
        id = shell.program("task", "create", "fix", "Fix it", env=there).out.strip()
        filler = fill(disk)

        moved = shell.program("task", "update", id, "--status", "working", env=there)
        filler.unlink()
        shell.program("task", "update", id, "--summary", "Fix it well", env=there)

        assert moved.code == 0
        assert "could not be written" in moved.err
        text = shell.file(id).read_text(encoding="utf-8")
        assert "status: working\n" in text
        assert "summary: Fix it well\n" in text


# --- checkpoints --------------------------------------------------------------------------------


@pytest.mark.parametrize("done", [(), ("--done",)], ids=["kept", "done"])
@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000], ids=["lists", "objects"])
def test_a_hook_whose_json_is_nested_too_deeply_is_told_so(shell, text, done):
    id = shell.create()
    shell.bring(id, Status.WORKING)

    answer = shell.run("checkpoint", "--task-id", id, *done, stdin=text.encode())

    assert "no checkpoint was kept: the JSON on stdin is nested too deeply" in answer.why
    assert shell.status(id) is Status.WORKING


@pytest.mark.parametrize("number", ["nan", "NaN", "-nan", "inf", "-inf", "1.5", "-0.1"])
def test_a_confidence_that_is_not_between_0_and_1_is_wrong_usage(shell, number):
    id = shell.create()
    shell.bring(id, Status.WORKING)

    answer = shell.run("checkpoint", "--task-id", id, f"--confidence={number}")

    assert answer.code == 2, answer
    assert "0" in answer.why
    assert not (shell.home / "tasks" / id / "checkpoints").exists()


# --- what would move a task ---------------------------------------------------------------------


@pytest.mark.parametrize("status", list(Status))
def test_why_offers_no_move_that_only_the_orchestrator_makes(shell, status):
    id = shell.create()
    shell.bring(id, status)

    moves = json.loads(shell.did("task", "why", id, "--json"))["arrows"]
    told = shell.did("task", "why", id)

    assert all("orchestrator" not in it["by"] for it in moves)
    assert "orchestrator" not in told
    assert "→ paused-for-intervention" not in told
