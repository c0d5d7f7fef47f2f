"""What `status` says of layers, caches and service data, as it was noted when they were made."""

import pytest

from lockgate.adapters.system import kept_sizes
from lockgate.adapters.workspaces.layer_notes import forget, note_size
from lockgate.faces.words.board import kept_lines
from tests.faces.shell import Shell

GB = 10**9


@pytest.mark.parametrize(
    ("sizes", "line"),
    [
        ({"layers": 0, "caches": 0, "services": 0}, ()),
        ({"layers": 9 * 10**8, "caches": 0, "services": 0}, ()),
        (
            {"layers": 12 * 10**8, "caches": 4 * 10**8, "services": 10**6},
            ("kept on disk: set-up layers 1.2 GB, caches 0.4 GB",),
        ),
        ({"layers": 0, "caches": 0, "services": 3 * GB}, ("kept on disk: service data 3.0 GB",)),
    ],
)
def test_a_line_is_shown_where_it_takes_much_of_the_disk(sizes, line) -> None:
    assert kept_lines(sizes) == line


def test_status_adds_up_what_was_noted(shell: Shell) -> None:
    shell.create()
    home = shell.home
    for name, size in (("layers/p/1", GB), ("layers/p/2", 2 * GB), ("services/p/1", 7)):
        (home / name).mkdir(parents=True)
        note_size(home / name, size)
    forget(home / "layers" / "p" / "2")
    (home / "caches").mkdir()
    (home / "caches" / ".note-p").write_text('{"size": "half a no')

    told, text = shell.run("status", "--json").facts, shell.run("status").out

    assert told["kept"] == {"layers": GB, "caches": 0, "services": 7} == kept_sizes(home)
    assert text.rstrip().endswith("kept on disk: set-up layers 1.0 GB")
