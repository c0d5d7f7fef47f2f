"""Reads a row or a JSON object strictly: a value of another type is damage, never a default."""

import json
from collections.abc import Mapping
from enum import Enum
from typing import TypeVar, cast

from lockgate.errors import Unavailable

Row = Mapping[str, object]
Member = TypeVar("Member", bound=Enum)


class Fields:
    """The fields of one thing; `where` names it in the message when one is damaged."""

    def __init__(self, where: str, values: Row) -> None:
        self.where = where
        self._values = values

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if isinstance(value, str):
            return value
        raise damaged(self.where, f"{name} is {value!r}, not a text")

    def text_or_none(self, name: str) -> str | None:
        return None if self._is_none(name) else self.text(name)

    def whole(self, name: str) -> int:
        value = self._values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise damaged(self.where, f"{name} is {value!r}, not a whole number")

    def whole_or_none(self, name: str) -> int | None:
        return None if self._is_none(name) else self.whole(name)

    def real(self, name: str) -> float:
        value = self._values.get(name)
        if isinstance(value, float):
            return value
        return float(self.whole(name))

    def real_or_none(self, name: str) -> float | None:
        return None if self._is_none(name) else self.real(name)

    def flag(self, name: str) -> bool:
        value = self._values.get(name)
        if value in (0, 1):
            return bool(value)
        raise damaged(self.where, f"{name} is {value!r}, neither true nor false")

    def choice(self, name: str, choices: type[Member]) -> Member:
        value = self.text(name)
        try:
            return choices(value)
        except ValueError:
            raise damaged(self.where, f"{name} is {value!r}, which is none of its words") from None

    def has(self, name: str) -> bool:
        """Whether it is there at all: a row written by an earlier version may lack it."""
        return name in self._values

    def inner(self, name: str) -> "Fields":
        return fields_of(f"{self.where}, {name}", self._values.get(name))

    def inner_or_none(self, name: str) -> "Fields | None":
        return None if self._is_none(name) else self.inner(name)

    def each(self, name: str) -> list["Fields"]:
        where = f"{self.where}, {name}"
        return [fields_of(where, it) for it in items_of(where, self._values.get(name))]

    def listed(self, name: str) -> list[object]:
        return items_of(f"{self.where}, {name}", self._values.get(name))

    def json(self, name: str) -> object:
        """What a column of JSON text says."""
        try:
            return json.loads(self.text(name))
        except (ValueError, RecursionError):
            raise damaged(self.where, f"{name} is not JSON") from None

    def texts(self, name: str) -> list[str]:
        """What a column of JSON text says, when it must be a list of texts."""
        items = items_of(f"{self.where}, {name}", self.json(name))
        found = [it for it in items if isinstance(it, str)]
        if len(found) != len(items):
            raise damaged(self.where, f"{name} is not a list of texts")
        return found

    def _is_none(self, name: str) -> bool:
        if name not in self._values:
            raise damaged(self.where, f"{name} is missing")
        return self._values[name] is None


def fields_of(where: str, value: object) -> Fields:
    return Fields(where, object_of(where, value))


def object_of(where: str, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise damaged(where, "it is not a JSON object")
    return cast("dict[str, object]", value)  # the keys of a JSON object are texts


def items_of(where: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise damaged(where, "it is not a JSON list")
    return cast("list[object]", value)  # isinstance cannot say what is in it


def damaged(where: str, why: str) -> Unavailable:
    return Unavailable(
        f"{where} was not read",
        why=f"the database is damaged: {why}",
        fix="restore the database from a backup; what happened stands in its events",
    )
