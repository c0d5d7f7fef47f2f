"""Which project a clone on another machine is of."""

import pytest

from lockgate.core.config.clones import Clone, Held, Unclear, meant

SHOP = Held(root="/srv/shop", name="shop", id="1", origin="git@github.com:acme/shop.git")
FORK = Held(root="/srv/fork/shop", name="shop", id="2", origin="https://github.com/bob/shop")
OWN = Held(root="/srv/tools", name="tools", id="3")
BARE = Held(root="/srv/api", name="api", id="4", origin="/srv/git/api.git")
TWIN = Held(root="/srv/two", name="two", id="5", origin="https://github.com/acme/shop")
ALL = (SHOP, FORK, OWN, BARE)


@pytest.mark.parametrize(
    ("clone", "found"),
    [
        (Clone(origin="https://github.com/acme/shop", name="x"), SHOP),
        (Clone(origin="ssh://git@github.com/bob/shop.git"), FORK),
        (Clone(project="2"), FORK),
        (Clone(project="/srv/shop"), SHOP),
        (Clone(origin="https://elsewhere.example/a/b", project="tools"), OWN),
        (Clone(origin="/srv/tools/", name="mine"), OWN),
        (Clone(origin="file:///srv/tools/.git"), OWN),
        (Clone(origin="ssh://build/srv/git/api.git"), BARE),
        (Clone(origin="build:/srv/tools"), OWN),
        (Clone(origin="https://github.com/acme/tools.git"), OWN),
        (Clone(name="tools"), OWN),
    ],
)
def test_a_clone_is_of_the_project_with_its_origin_or_name(clone: Clone, found: Held) -> None:
    assert meant(clone, ALL) == found


@pytest.mark.parametrize(
    ("clone", "held", "why"),
    [
        (Clone(), ALL, "in no git repository"),
        (Clone(origin="https://github.com/eve/shop"), ALL, "no project cloned from"),
        (Clone(origin="/home/eve/other"), ALL, "no project cloned from /home/eve/other"),
        (Clone(project="none"), ALL, "no project called 'none'"),
        (Clone(project="shop"), ALL, "several projects of the server are called 'shop'"),
        (Clone(name="shop"), ALL, "several"),
        (Clone(name="new"), (), "no project called 'new'"),
        (Clone(origin="https://github.com/acme/shop"), (SHOP, TWIN), "several"),
    ],
)
def test_a_clone_that_is_of_none_or_of_several_is_told_so(clone: Clone, held, why: str) -> None:
    answer = meant(clone, held)

    assert isinstance(answer, Unclear)
    assert why in answer.why
    assert "LOCKGATE_PROJECT" in answer.fix


def test_a_password_in_an_origin_is_in_no_message() -> None:
    for held in (ALL, (SHOP, TWIN)):
        found = meant(Clone(origin="https://ann:SECRET@github.com/acme/shop", name="x"), held)
        none = meant(Clone(origin="https://ann:SECRET@host/acme/none"), held)
        assert not isinstance(none, Held)
        assert "SECRET" not in none.why
        assert isinstance(found, Held) or "SECRET" not in found.why
