"""Directories and branches that belong to nothing which the database knows."""

from lockgate.core.orphans import Known, Orphan, OwnBranch, orphans

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


def test_a_branch_of_lockgate_goes_only_where_nothing_is_lost_and_nobody_is_on_it() -> None:
    safe = OwnBranch(task="gone-2", name="safe", commit="2", kept=True)
    only = OwnBranch(task="gone-2", name="only", commit="3", kept=False)
    used = OwnBranch(task="gone-3", name="used", commit="4", kept=True, used="it is checked out")

    assert safe.why_it_stays == ""
    assert only.why_it_stays == "its commit is named by nothing else"
    assert used.why_it_stays == "it is checked out"
