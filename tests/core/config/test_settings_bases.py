"""Which branch is the base."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.config.ci import ONLY_WITH, SERVERS, TARGETS
from lockgate.core.config.settings import Branch, Branches, Target, base_of, in_ci, target_of


def found(fetched_first: bool = False, **given: object) -> str:
    branches = Branches(**{"local": {}, "fetched": {}, **given})  # type: ignore[arg-type]  # a table
    base = base_of(branches, fetched_first=fetched_first)
    return base.ref or base.name if base else ""


LOCAL = {"main": "m", "develop": "d", "feature": "f"}


@pytest.mark.parametrize(
    ("given", "ref"),
    [
        ({"local": LOCAL, "default": "develop"}, "develop"),
        ({"local": LOCAL, "default": "develop", "recorded": "main"}, "develop"),
        ({"local": LOCAL, "recorded": "develop"}, "develop"),
        ({"local": LOCAL}, "main"),
        ({"local": {"master": "m", "feature": "f"}}, "master"),
        (
            {
                "local": {"feature": "f"},
                "fetched": {"main": "m"},
                "remote": "origin",
                "default": "main",
            },
            "origin/main",
        ),
        ({"local": {"feature": "f"}, "recorded": "gone"}, "feature"),
        ({"local": {"trunk": "t"}}, "trunk"),
        ({"local": {"trunk": "t"}, "remote": "origin"}, ""),
        ({"local": {"trunk": "t", "feature": "f"}}, ""),
        ({}, ""),
        ({"local": LOCAL, "fetched": {"main": "M"}}, "main"),
        (
            {"local": LOCAL, "fetched": {"main": "M"}, "remote": "up", "fetched_first": True},
            "up/main",
        ),
        ({"local": LOCAL, "default": "gone"}, "main"),
    ],
)
def test_the_base_is_the_first_of_these_that_has_a_commit(given, ref):
    assert found(**given) == ref


@pytest.mark.parametrize("name", TARGETS)
def test_every_build_servers_variable_names_the_target(name):
    also = {ONLY_WITH[name]: "7"} if name in ONLY_WITH else {}

    assert target_of({name: "refs/heads/release/1", **also}) == Target(name, "release/1")
    assert in_ci({name: "main", **also})


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"GITHUB_BASE_REF": ""},
        {"DRONE_TARGET_BRANCH": "feature"},
        {"TRAVIS_BRANCH": "feature", "TRAVIS_PULL_REQUEST": "false"},
        {"CI": "false"},
        {"CI": "true"},
        {"CI": "1"},
    ],
)
def test_a_build_without_a_pull_request_names_no_target(environ):
    assert target_of(environ) is None
    assert not in_ci(environ)


@pytest.mark.parametrize("environ", [{"CI": "woodpecker"}, *({it: "1"} for it in SERVERS)])
def test_a_build_server_is_known_by_a_variable_of_its_own(environ):
    assert in_ci({"CI": "true", **environ})


names = st.sampled_from(["main", "master", "develop", "x", ""])
tips = st.dictionaries(names.filter(bool), st.sampled_from("abc"))


@given(tips, tips, names, names, st.sampled_from(["", "origin"]), st.booleans())
def test_a_base_is_always_a_branch_that_is_there(local, fetched, default, recorded, remote, first):
    branches = Branches(
        local=local, fetched=fetched, default=default, recorded=recorded, remote=remote
    )

    base = base_of(branches, fetched_first=first)

    known = {Branch(name, at) for name, at in local.items()}
    known |= {Branch(name, at, f"{remote}/{name}") for name, at in fetched.items()}
    assert base is None or base in known
