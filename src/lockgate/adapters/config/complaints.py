"""What pydantic found, said in our words: the key, its value, and what is allowed."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from lockgate.adapters.config.layout import Path

LONGEST_VALUE = 60
MACHINE_INT_BITS = 64


def place(error: ErrorDetails) -> Path:
    return tuple(part for part in error["loc"] if part != "[key]")


def wording(error: ErrorDetails, model: type[BaseModel]) -> str:
    path = place(error)
    key = dotted(path)
    if error["type"] == "extra_forbidden":
        return f"{key} is not a key of this table{_suggestion(path, model)}"
    if error["type"] == "missing":
        return f"{key} is missing"
    return f"{key} = {shown(error['input'])} is not allowed: {_allowed(error)}"


def dotted(path: Path) -> str:
    """As people write it: gates.list[0].timeout."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def shown(value: object) -> str:
    """The value as TOML would have it, cut; a number too long to print has no digits here."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > MACHINE_INT_BITS:
        return "a very large number"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _allowed(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    if error["type"] == "string_pattern_mismatch":
        return f"it must match {context['pattern']}"
    return error["msg"].replace("Input should be", "it must be").replace("Input should", "it must")


def _suggestion(path: Path, model: type[BaseModel]) -> str:
    table = _table_at(path[:-1], model)
    known = [field.alias or name for name, field in table.model_fields.items()]
    near = get_close_matches(str(path[-1]), known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else f"; it has {', '.join(known)}"


def _table_at(path: Path, model: type[BaseModel]) -> type[BaseModel]:
    """The model of the table at a path; lists and named tables are stepped over."""
    here: Any = model
    for part in path:
        if isinstance(here, type) and issubclass(here, BaseModel):
            fields = {it.alias or name: it.annotation for name, it in here.model_fields.items()}
            here = fields[str(part)]
        else:
            here = get_args(here)[-1]
    return cast("type[BaseModel]", here)  # only a model forbids keys
