"""A diff taken apart: files, hunks, lines with their numbers, as git writes them."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.faces.words.changes import FileChange, files_of, in_reading_order

DIFF = """diff --git a/login.py b/login.py
index 1..2 100644
--- a/login.py
+++ b/login.py
@@ -3,4 +3,5 @@ def after_login():
 a
-b
+c
+d
 e
@@ -20 +21 @@
-x
+y
\\ No newline at end of file
diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
diff --git a/p.png b/p.png
new file mode 100644
Binary files /dev/null and b/p.png differ
diff --git "a/\\303\\244 \\"x\\".txt" "b/\\303\\244 \\"x\\".txt"
deleted file mode 100644
--- "a/\\303\\244 \\"x\\".txt"
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
"""


def test_every_file_of_a_diff_is_found_with_what_became_of_it() -> None:
    found = [(it.name, it.how, it.added, it.removed) for it in files_of(DIFF)]

    assert found == [
        ("login.py", "", 3, 2),
        ("new name.txt", "renamed", 0, 0),
        ("p.png", "binary", 0, 0),
        ('ä "x".txt', "deleted", 0, 1),
        ("run.sh", "mode", 0, 0),
    ]


def test_lines_have_the_numbers_of_both_sides() -> None:
    first, second = files_of(DIFF)[0].hunks()

    assert first.where == "def after_login():"
    assert [(it.mark, it.old, it.new, it.text) for it in first.lines] == [
        (" ", 3, 3, "a"),
        ("-", 4, 0, "b"),
        ("+", 0, 4, "c"),
        ("+", 0, 5, "d"),
        (" ", 5, 6, "e"),
    ]
    assert [it.mark for it in second.lines] == ["-", "+", "\\"]
    assert [len(it) for it in first.blocks()] == [1, 3, 1]


@pytest.mark.parametrize(
    ("name", "lines", "folded"),
    [
        ("a.py", 3, ""),
        ("a.py", 2_500, "large"),
        ("web/package-lock.json", 3, "lock file"),
        ("uv.lock", 3, "lock file"),
    ],
)
def test_what_nobody_reads_is_one_line_until_it_is_opened(name, lines, folded) -> None:
    text = "@@ -0,0 +1 @@\n" + "+x\n" * lines
    file = FileChange(name=name, before=name, how="", added=lines, removed=0, text=text)

    assert file.folded == folded


def test_protected_files_come_first_then_tests() -> None:
    names = ("b.py", "tests/test_b.py", "deploy.yml", "a.py")
    files = [FileChange(name=it, before=it, how="", added=1, removed=0, text="") for it in names]

    found = [it.name for it in in_reading_order(files, ["deploy.yml"])]

    assert found == ["deploy.yml", "tests/test_b.py", "b.py", "a.py"]


NAMES = st.text(
    st.characters(blacklist_characters="/\0\n\r", blacklist_categories=("Cs", "Cc")),
    min_size=1,
    max_size=12,
).filter(lambda it: it not in {".", ".."} and not it.startswith("-") and it.lower() != ".git")


@given(NAMES, st.lists(st.text("ab+- \t@\\", max_size=5), max_size=12))
def test_what_git_itself_writes_is_read_back(tmp_path_factory, name: str, lines: list[str]) -> None:
    place = Path(tmp_path_factory.mktemp("git"))
    (place / name).write_text("a\nb\nc\n", encoding="utf-8")
    after = "".join(f"{it}\n" for it in lines)
    other = place / "after"
    other.mkdir(exist_ok=True)
    (other / name).write_text(after, encoding="utf-8")
    argv = ("git", "diff", "--no-index", "--", name, f"after/{name}")
    said = subprocess.run(argv, cwd=place, capture_output=True, check=False).stdout.decode()

    found = files_of(said)

    if after == "a\nb\nc\n":
        assert found == ()
        return
    [file] = found
    assert file.name == f"after/{name}"
    new = [line.text for hunk in file.hunks() for line in hunk.lines if line.mark in " +"]
    assert new == lines or not lines


def test_a_diff_of_five_thousand_files_is_taken_apart() -> None:
    one = DIFF.partition("diff --git a/old")[0]

    found = files_of("".join(one.replace("login", f"f{n}") for n in range(5_000)))

    assert len(found) == 5_000
    assert found[-1].name == "f4999.py"
