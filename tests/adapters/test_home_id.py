"""The id of a home: made once, and no other home has it."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from lockgate.adapters.system import id_of


def test_all_who_ask_for_the_id_of_a_home_at_once_get_the_same_one(tmp_path) -> None:
    home, together = tmp_path / "home", Barrier(8)
    home.mkdir()

    def asked(_: int) -> str:
        together.wait()
        return id_of(home)

    with ThreadPoolExecutor(8) as threads:
        told = set(threads.map(asked, range(8)))

    assert told == {id_of(home)}
    assert [it.name for it in home.iterdir()] == ["id"]


def test_two_homes_have_different_ids(tmp_path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()

    assert id_of(one) != id_of(other)
