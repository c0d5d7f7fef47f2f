"""The data that services start from: made once for its inputs, and a change's own for it alone."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from lockgate.adapters.workspaces import service_data
from lockgate.core.config.settings import EnvSettings, Service, Settings
from lockgate.core.model.task import Task
from lockgate.errors import NotPrepared, Unavailable
from lockgate.ports import candidate_of
from tests.adapters.workshop import BARE, BOXED, Workshop

STORE = Service(
    "store",
    "exec sleep 600",
    prepare='cat schema/* >"$DATA/rows" && od -An -N8 -tx8 /dev/urandom >"$DATA/made"',
    inputs=("schema",),
)
SETTINGS = Settings(formula="none", gates=(), services=(STORE,))


def a_shop(place: Path, *, sandboxed: bool) -> Workshop:
    made = Workshop.at(place, sandboxed=sandboxed)
    made.commit("schema/1.sql", "one\n")
    return made


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return a_shop(tmp_path, sandboxed=False)


def data(shop: Workshop, task: Task, commit: str = "", settings: Settings = SETTINGS) -> Path:
    it = candidate_of(shop.project, task)
    found = shop.workspaces.service_data(it, settings, commit)
    assert found is not None
    return found / "store" / "data"


def test_data_is_prepared_once_for_the_content_of_its_inputs(shop) -> None:
    first = data(shop, shop.task())
    shop.commit("b.txt")
    same = data(shop, shop.task("other-3f9a"))
    shop.commit("schema/2.sql", "two\n")
    other = data(shop, shop.task("third-3f9a"))

    assert (first / "rows").read_text() == "one\n"
    assert same == first
    assert (other / "rows").read_text() == "one\ntwo\n"
    assert shop.workspaces.sizes()["services"] > 0


@pytest.mark.parametrize("sandboxed", [BOXED, BARE])
def test_a_change_with_other_inputs_has_data_of_its_own_that_nobody_else_starts_from(
    tmp_path, sandboxed
) -> None:
    shop = a_shop(tmp_path, sandboxed=sandboxed)
    task = shop.task()
    before = data(shop, task)
    seen = (before / "made").read_text()
    shop.workspaces.prepare(shop.project, task)
    shop.agent(task, "echo evil > schema/1.sql")
    commit = shop.taken(task).commit

    own = data(shop, task, commit)

    assert (own / "rows").read_text() == "evil\n"
    assert shop.home / "runs" / task.id in own.parents
    assert data(shop, task) == data(shop, shop.task("other-3f9a")) == before
    assert ((before / "rows").read_text(), (before / "made").read_text()) == ("one\n", seen)
    shop.workspaces.release(shop.project, task)
    assert not own.exists()


def test_a_change_that_leaves_the_inputs_alone_starts_from_bases_data(shop) -> None:
    task = shop.task()
    shop.workspaces.prepare(shop.project, task)
    shop.agent(task, "echo two > a.txt")

    assert data(shop, task, shop.taken(task).commit) == data(shop, task)


def test_a_prepare_that_fails_is_told_in_its_last_words_and_leaves_nothing(shop) -> None:
    broken = replace(STORE, prepare="echo no such column; exit 3")

    with pytest.raises(Unavailable) as refused:
        data(shop, shop.task(), settings=replace(SETTINGS, services=(broken,)))

    said = str(refused.value)
    assert "the data of the service store was not prepared" in said
    assert "prepare of store exited 3; it said: no such column" in said
    assert list(shop.home.glob("services/*/.new-*")) == []


def test_a_prepare_that_failed_is_not_run_again_for_each_who_asks(shop, monkeypatch) -> None:
    place = shop.root.parent / "runs"
    broken = replace(STORE, prepare=f"echo ran >> '{place}'; exit 3")
    settings = replace(SETTINGS, services=(broken,))

    said = []
    for again in (30.0, 30.0, 0.0):
        monkeypatch.setattr(service_data, "AGAIN", again)
        with pytest.raises(Unavailable) as refused:
            data(shop, shop.task(), settings=settings)
        said.append((str(refused.value), refused.value.fix))

    assert said[0] == said[1] == said[2]
    assert place.read_text().count("ran") == 2


def test_data_that_was_not_used_for_long_goes_when_there_is_much_of_it(shop, monkeypatch) -> None:
    monkeypatch.setattr(service_data, "KEPT", 2)
    monkeypatch.setattr(service_data, "LATELY", -1.0)
    first = data(shop, shop.task())
    shop.commit("schema/2.sql", "two\n")

    data(shop, shop.task("other-3f9a"))
    shop.commit("schema/3.sql", "three\n")
    last = data(shop, shop.task("third-3f9a"))

    assert (first.exists(), last.exists()) == (False, True)


def test_a_change_whose_own_prepare_fails_is_told_apart_from_what_fails_on_base(shop) -> None:
    settings = replace(SETTINGS, services=(replace(STORE, prepare="! grep -rn evil schema"),))
    task = shop.task()
    shop.workspaces.prepare(shop.project, task)
    shop.agent(task, "echo evil > schema/1.sql")

    with pytest.raises(NotPrepared) as refused:
        data(shop, task, shop.taken(task).commit, settings)

    assert "it said: schema/1.sql:1:evil" in str(refused.value)
    assert data(shop, task, settings=settings).exists()


@pytest.mark.parametrize("sandboxed", [BOXED])
def test_what_prepares_data_finds_what_the_set_up_made_for_base_and_for_a_change(
    tmp_path, sandboxed
) -> None:
    shop = a_shop(tmp_path, sandboxed=sandboxed)
    store = replace(STORE, prepare='cat tool/word schema/* >"$DATA/rows"')
    env = EnvSettings("mkdir tool && echo tool >tool/word", ("a.txt",))
    settings = replace(SETTINGS, services=(store,), env=env)
    task = shop.task()
    shop.workspaces.prepare(shop.project, task)
    shop.agent(task, "echo more > schema/2.sql")

    own = data(shop, task, shop.taken(task).commit, settings)

    assert (data(shop, task, settings=settings) / "rows").read_text() == "tool\none\n"
    assert (own / "rows").read_text() == "tool\none\nmore\n"
