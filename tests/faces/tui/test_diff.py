"""A change as the review has it: files, lines, comments that stay at their lines."""

from lockgate.faces.tui.diff import Note, Side, in_order, parsed, placed, rows

DIFF = """\
diff --git a/app/login.py b/app/login.py
index 1..2 100644
--- a/app/login.py
+++ b/app/login.py
@@ -11,4 +11,5 @@ def page(request):
     user = request.user
     if not user:
-    return request.args["next"]
+    page = request.args.get("next", "/home")
+    return page if page.startswith("/") else "/home"

diff --git a/tests/test_login.py b/tests/test_login.py
new file mode 100644
--- /dev/null
+++ b/tests/test_login.py
@@ -0,0 +1,2 @@
+def test_page():
+    assert True
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
diff --git a/uv.lock b/uv.lock
--- a/uv.lock
+++ b/uv.lock
@@ -1 +1 @@
-one
+two
diff --git a/old.py b/new.py
rename from old.py
rename to new.py
--- a/old.py
+++ b/new.py
@@ -1,2 +1,2 @@
 keep
-gone
+come
"""
FILES = parsed(DIFF)


def a_note(**fields) -> Note:
    given = {"text": "why?", "by": "you", "priority": "P1", "file": "app/login.py", "draft": "d1"}
    return Note(**{**given, **fields})


def test_a_diff_is_read_into_files_with_their_numbers():
    names = [it.name for it in FILES]
    login = FILES[0]

    assert names == ["app/login.py", "tests/test_login.py", "logo.png", "uv.lock", "new.py"]
    assert (login.added, login.removed) == (2, 1)
    assert [(it.kind, it.old, it.new) for it in login.lines] == [
        ("@", 11, 11),
        (" ", 11, 11),
        (" ", 12, 12),
        ("-", 13, 0),
        ("+", 0, 13),
        ("+", 0, 14),
    ]
    assert FILES[4].before == "old.py"


def test_binaries_and_lock_files_and_large_ones_are_folded():
    large = parsed("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,2001 @@\n" + "+x\n" * 2_001)

    assert [it.folded for it in FILES] == [False, False, True, True, False]
    assert large[0].folded
    assert [row.file for row in rows(FILES, (), (), split=False) if row.head] == [0, 1, 2, 3, 4]
    assert not [row for row in rows(FILES, (), (), split=False) if row.file == 3 and row.line]
    assert [row for row in rows(FILES, (), (3,), split=False) if row.file == 3 and row.line]


def test_what_is_protected_comes_first_then_tests():
    names = [it.name for it in in_order(FILES, ["new.py"])]

    assert names == ["new.py", "tests/test_login.py", "app/login.py", "logo.png", "uv.lock"]


def test_a_quoted_name_is_read_as_git_wrote_it():
    name = r"caf\303\251 \"x\".py"
    text = f'diff --git "a/{name}" "b/{name}"\nnew file mode 100644\n'

    assert parsed(text)[0].name == 'café "x".py'


def test_a_comment_stands_below_its_line():
    there, gone = placed(FILES, [a_note(line=14)])
    found = rows(FILES, there, (), split=False)
    at = next(n for n, row in enumerate(found) if row.note)
    line = found[at - 1].line

    assert not gone
    assert line is not None
    assert line.new == 14


def test_a_comment_moves_with_the_line_that_it_quotes():
    moved = a_note(line=2, quote='    return page if page.startswith("/") else "/home"')

    there, gone = placed(FILES, [moved])

    assert [it.line for it in there] == [14]
    assert not gone


def test_a_comment_whose_line_is_gone_is_kept_apart():
    there, gone = placed(FILES, [a_note(line=13, quote="something else"), a_note(file="none.py")])

    assert not there
    assert len(gone) == 2


def test_a_comment_on_a_removed_line_stays_on_the_old_side():
    there, _ = placed(FILES, [a_note(line=13, side=Side.OLD)])
    found = rows(FILES, there, (), split=False)
    at = next(n for n, row in enumerate(found) if row.note)
    line = found[at - 1].line

    assert line is not None
    assert line.kind == "-"


def test_side_by_side_has_what_goes_and_what_comes_in_one_row():
    pairs = [
        (row.line and row.line.kind, row.beside and row.beside.kind)
        for row in rows(FILES[:1], (), (), split=True)
        if not row.head
    ]

    assert pairs == [("@", None), (" ", " "), (" ", " "), ("-", "+"), (None, "+")]


def test_what_is_no_diff_has_no_files():
    assert parsed("") == ()
    assert parsed("hello\n\x1b]52;c;x\x07\n") == ()
