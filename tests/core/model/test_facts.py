"""Values as plain dictionaries, and what every value type promises."""

from enum import StrEnum

import pytest
from msgspec import Struct

from lockgate.core.model.facts import as_facts, json_facts


class Colour(StrEnum):
    RED = "red"


class Inner(Struct, frozen=True):
    name: str
    colour: Colour = Colour.RED


class Twin(Struct, frozen=True):
    name: str
    colour: Colour = Colour.RED


class Outer(Struct, frozen=True, kw_only=True):
    inner: Inner
    several: tuple[Inner, ...] = ()
    listed: list[tuple[Inner, int]] = []
    by: dict[str, Inner] = {}
    names: frozenset[str] = frozenset()
    none: None = None


A, B = Inner("a"), Inner("b")


def test_every_value_inside_becomes_a_dictionary_and_what_holds_them_keeps_its_type() -> None:
    deep = Outer(inner=A, several=(A, B), listed=[(B, 1)], by={"k": A}, names=frozenset({"n"}))

    facts = as_facts(deep)

    a, b = {"name": "a", "colour": Colour.RED}, {"name": "b", "colour": Colour.RED}
    assert facts == {
        "inner": a,
        "several": (a, b),
        "listed": [(b, 1)],
        "by": {"k": a},
        "names": frozenset({"n"}),
        "none": None,
    }
    assert list(facts) == ["inner", "several", "listed", "by", "names", "none"]


def test_an_enum_stays_the_member_that_it_is() -> None:
    assert as_facts(A)["colour"] is Colour.RED


def test_two_kinds_with_the_same_fields_are_not_equal_and_one_kind_is_one_key() -> None:
    twin: object = Twin("a")

    assert twin != A
    assert len({A, Inner("a"), B}) == 2
    assert repr(A) == "Inner(name='a', colour=<Colour.RED: 'red'>)"


def test_a_frozen_value_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        A.name = "other"  # type: ignore[misc]  # the point of the test


def test_as_json_has_it_keys_are_texts_and_what_has_no_order_is_sorted() -> None:
    it = Outer(inner=A, several=(B,), by={"k": A}, names=frozenset({"b", "a"}))

    a, b = {"name": "a", "colour": "red"}, {"name": "b", "colour": "red"}
    assert json_facts(it) == {
        "inner": a,
        "several": [b],
        "listed": [],
        "by": {"k": a},
        "names": ["a", "b"],
        "none": None,
    }
