"""Where an orchestrator has commits judged: kept for the next, and gone with it."""

from pathlib import Path

import pytest

from lockgate.adapters.workspaces.temporary import PREFIX
from lockgate.bootstrap.gates import MOST, Benches
from lockgate.ports import candidate_of
from tests.adapters.workshop import Workshop


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    return Workshop.at(tmp_path, sandboxed=False)


@pytest.fixture
def benches(shop: Workshop) -> Benches:
    shop.home.mkdir()
    return Benches(shop.home)


def homes(benches: Benches) -> list[Path]:
    return sorted(benches.home.glob(f"{PREFIX}*"))


def judged_at(benches: Benches, shop: Workshop) -> Path:
    with benches.spot_checking(candidate_of(shop.project, shop.task())) as bench:
        return bench.check.runner.home


def test_what_was_set_up_for_one_serves_the_next(benches, shop) -> None:
    first = judged_at(benches, shop)
    shop.commit("another")

    assert judged_at(benches, shop) == first
    assert homes(benches) == [first]


def test_two_at_once_have_each_their_own(benches, shop) -> None:
    with benches.spot_checking(candidate_of(shop.project, shop.task())) as one:
        other = judged_at(benches, shop)

        assert one.check.runner.home != other
    assert len(homes(benches)) == 2


def test_after_an_error_nothing_is_kept(benches, shop) -> None:
    with (
        pytest.raises(ValueError, match="oops"),
        benches.spot_checking(candidate_of(shop.project, shop.task())),
    ):
        raise ValueError("oops")

    assert homes(benches) == []


def test_only_so_many_are_kept_and_the_oldest_goes_first(benches, tmp_path) -> None:
    shops = [Workshop.at(tmp_path / str(n), sandboxed=False) for n in range(MOST + 2)]

    used = [judged_at(benches, it) for it in shops]

    assert homes(benches) == sorted(used[2:])


def test_all_of_them_go_in_the_end_even_one_that_somebody_is_at(benches, shop, tmp_path) -> None:
    judged_at(benches, Workshop.at(tmp_path / "other", sandboxed=False))
    with benches.spot_checking(candidate_of(shop.project, shop.task())):
        benches.close()

        assert len(homes(benches)) == 1
    assert homes(benches) == []
