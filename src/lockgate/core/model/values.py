"""A value as plain dictionaries, as the store, the events and `--json` write it."""

from typing import cast

from msgspec import Struct


def as_facts(it: Struct) -> dict[str, object]:
    """Its fields by name, and so for every value inside it; enums and sets stay as they are."""
    return {name: _plain(getattr(it, name)) for name in it.__struct_fields__}


def _plain(it: object) -> object:
    if isinstance(it, Struct):
        return as_facts(it)
    if isinstance(it, (tuple, list)):
        parts = cast("tuple[object, ...] | list[object]", it)
        return type(parts)(_plain(part) for part in parts)
    if isinstance(it, dict):
        pairs = cast("dict[object, object]", it)
        return {key: _plain(value) for key, value in pairs.items()}
    return it
