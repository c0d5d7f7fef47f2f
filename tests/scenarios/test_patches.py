"""What a yes is bound to: the same patch wherever it stands, another where one line differs."""

from pathlib import Path

import pytest

from lockgate.core.model.task import Task
from lockgate.ports import Change
from tests.adapters.workshop import Workshop, git

LINES = "".join(f"line {n}\n" for n in range(40))


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    made = Workshop.at(tmp_path, sandboxed=False)
    made.commit("a.txt", LINES)
    return made


def change(shop: Workshop, number: int, *texts: str, name: str = "a.txt") -> Change:
    """What a new task's work is when its agent leaves these texts, each in a commit of its own."""
    task = shop.task(f"task-{number}", branch=f"task-{number}")
    place = shop.workspaces.prepare(shop.project, task)
    for text in texts:
        (place / name).write_text(text)
        git(place, "add", "--all")
        git(place, "commit", "--quiet", "--message", f"{number}")
    return taken(shop, task)


def taken(shop: Workshop, task: Task) -> Change:
    return shop.taken(task)


def test_a_patch_is_the_same_on_another_base_however_its_lines_have_moved(shop) -> None:
    first = change(shop, 1, LINES.replace("line 20\n", "line twenty\n"))
    shop.commit("b.txt", "elsewhere\n")
    longer = "new\n" * 7 + LINES
    shop.commit("a.txt", longer)

    second = change(shop, 2, longer.replace("line 20\n", "line twenty\n"))

    assert first.commit != second.commit
    assert first.patch == second.patch


def test_a_patch_is_the_same_in_one_commit_and_in_several(shop) -> None:
    wanted = LINES.replace("line 20\n", "line twenty\n")

    assert change(shop, 1, wanted).patch == change(shop, 2, "draft\n", wanted).patch


@pytest.mark.parametrize(
    "text",
    [
        LINES.replace("line 20\n", "line twenty \n"),
        LINES.replace("line 20\n", "line twenty\n").replace("line 30\n", ""),
        LINES.replace("line 21\n", "line twenty\n"),
        LINES.replace("line 20\n", "line twenty\n").removesuffix("\n"),
        LINES,
    ],
    ids=["a space", "a line more", "another line", "no newline at the end", "nothing"],
)
def test_a_patch_is_another_where_one_line_differs(shop, text) -> None:
    first = change(shop, 1, LINES.replace("line 20\n", "line twenty\n"))

    second = change(shop, 2, "draft\n", text)

    assert first.patch != second.patch


def test_a_patch_is_another_in_another_file_or_with_another_mode(shop) -> None:
    shop.commit("b.txt", LINES)
    wanted = LINES.replace("line 20\n", "line twenty\n")
    patches = {change(shop, 1, wanted).patch, change(shop, 2, wanted, name="b.txt").patch}

    task = shop.task("task-3", branch="task-3")
    place = shop.workspaces.prepare(shop.project, task)
    (place / "a.txt").write_text(wanted)
    (place / "a.txt").chmod(0o755)

    assert len(patches | {taken(shop, task).patch}) == 3


def test_a_patch_of_binary_files_is_bound_to_every_byte(shop) -> None:
    patches = set()
    for number, content in enumerate((b"\0\1\2", b"\0\1\3", b"\0\1\2")):
        task = shop.task(f"task-{number}", branch=f"task-{number}")
        place = shop.workspaces.prepare(shop.project, task)
        (place / "image.bin").write_bytes(content)
        patches.add(taken(shop, task).patch)

    assert len(patches) == 2
