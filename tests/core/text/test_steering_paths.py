"""Patterns and the paths they name; what a change touches of them is what a human must see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lockgate.core.model.gates import CommandGate, Placement, Where
from lockgate.core.text.steering import MOST_FILES, matching, touched

parts = st.lists(
    st.text(st.characters(exclude_characters="/\0*?"), min_size=1, max_size=8),
    min_size=1,
    max_size=4,
)
paths = parts.map("/".join)


@pytest.mark.parametrize(
    ("pattern", "named", "not_named"),
    [
        (".github/**", [".github/ci.yml", ".github/a/b", ".github/.x"], [".github", "x/.github/y"]),
        ("Jenkinsfile", ["Jenkinsfile"], ["a/Jenkinsfile", "Jenkinsfile2", "jenkinsfile"]),
        ("**/conftest.py", ["conftest.py", "a/conftest.py", "a/b/conftest.py"], ["xconftest.py"]),
        ("*.toml", ["a.toml", ".toml"], ["a/b.toml", "a.tomlx"]),
        ("src/*/x.py", ["src/a/x.py"], ["src/x.py", "src/a/b/x.py"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "b"]),
        ("?.py", ["a.py", "é.py"], ["ab.py", ".py", "/.py"]),
        ("a.b", ["a.b"], ["axb"]),
        ("[x]+(y)", ["[x]+(y)"], ["x", "xy"]),
        ("**", ["a", "a/b", "a\nb"], []),
    ],
)  # fmt: skip
def test_a_pattern_names_these_paths_and_not_those(pattern, named, not_named) -> None:
    assert matching([*named, *not_named], [pattern]) == tuple(named)


@given(st.lists(paths), st.lists(paths))
def test_a_path_that_is_written_out_names_itself_alone(some, patterns) -> None:
    assert matching(some, patterns) == tuple(path for path in some if path in patterns)


@given(parts, paths)
def test_all_that_lies_below_a_directory_is_named_and_nothing_beside_it(directory, path) -> None:
    top = "/".join(directory)

    assert matching([f"{top}/{path}"], [f"{top}/**"]) == (f"{top}/{path}",)
    assert matching([f"{top}x/{path}", f"x{top}/{path}", top], [f"{top}/**"]) == ()


@given(st.lists(paths), st.lists(st.text("ab/*?.", max_size=8)))
def test_what_several_patterns_name_is_what_one_of_them_names_in_the_order_it_came(
    some, patterns
) -> None:
    one_by_one = {path for it in patterns for path in matching(some, [it])}

    assert matching(some, patterns) == tuple(path for path in some if path in one_by_one)
    assert matching(some, []) == ()


# --- `paths` of a gate --------------------------------------------------------------------------

PLACE = Placement(serial=True, on=(Where.CHANGE,))
API = CommandGate(name="api", place=replace(PLACE, paths=("services/api/**",)), command="a")
WEB = replace(API, name="web", place=replace(PLACE, paths=("web/**", "shared/**")))
EVERY = replace(API, name="every", place=PLACE)
RARE = replace(API, name="rare", place=replace(PLACE, paths=("docs/**",), when="false"))

# the files of a change → the gates that judge it
TOUCHED = [
    (["services/api/a.py"], ["api", "every"]),
    (["web/a.ts"], ["web", "every"]),
    (["shared/a.ts"], ["web", "every"]),
    (["services/api/a.py", "web/a.ts"], ["api", "web", "every"]),
    (["README.md"], ["api", "web", "every", "rare"]),
    (["services/api/a.py", "uv.lock"], ["api", "web", "every", "rare"]),
    (["docs/a.md"], ["api", "web", "every", "rare"]),
    ([], ["api", "web", "every", "rare"]),
    ([f"web/{n}.ts" for n in range(MOST_FILES + 1)], ["api", "web", "every", "rare"]),
]


@pytest.mark.parametrize(("files", "judging"), TOUCHED, ids=range(len(TOUCHED)))
def test_a_gate_with_paths_judges_what_touches_them_and_what_no_gate_names(files, judging) -> None:
    gates = (API, WEB, EVERY, RARE)

    assert [it.name for it in gates if touched(it, gates, files)] == judging
