"""Directories that belong to nothing which the database knows."""

from lockgate.core.orphans import Known, Orphan, orphans

KNOWN = Known(tasks={"t1"}, sessions={"t1.1"}, projects={"p"})


def test_a_name_that_no_row_has_is_an_orphan_and_work_is_told_apart() -> None:
    folders = {
        "tasks": ("t1", "gone-2"),
        "workspaces": ("t1", ".over-t1", "gone-2"),
        "homes": ("trial-1f",),
        "sessions": ("t1.1", "gone-2.1"),
        "layers": ("p", "q"),
        "repos": ("q",),
    }

    found = list(orphans(folders, KNOWN))

    assert found == [
        Orphan("tasks", "gone-2"),
        Orphan("workspaces", "gone-2"),
        Orphan("sessions", "gone-2.1"),
        Orphan("layers", "q"),
        Orphan("repos", "q"),
    ]
    assert [it.is_work for it in found] == [True, True, False, False, True]
