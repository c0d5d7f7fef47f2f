"""What is wrong with a file, all at once, in our words: the key, its value, and what is allowed.

Pydantic finds it, by models made from the tables of `schema`. It is loaded only where there is
something to say: it takes longer than everything else about a config.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo, fields
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from lockgate.adapters.config.layout import Complaint, Path
from lockgate.adapters.config.schema import Config

LONGEST_VALUE = 60
MACHINE_INT_BITS = 64
BOUNDS = ("gt", "ge", "le", "min_length", "max_length")
LOOSE = Field(strict=False)  # a list for a tuple, the word for a member of an enum


def complaints(spelled: dict[str, Any]) -> list[Complaint]:
    """Of what `spelled_out` gives, in pydantic's order."""
    try:
        model_of(Config).model_validate(spelled)
    except ValidationError as error:
        found = error.errors(include_url=False)
        return [(_place(it), partial(_wording, it, model_of(Config))) for it in found]
    return []


def json_schema() -> dict[str, Any]:
    """What `lockgate init --schema` prints."""
    schema = model_of(Config).model_json_schema()
    steps = schema["properties"]["steps"]
    listed = {key: steps.pop(key) for key in ("items", "type")}
    del steps["maxItems"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "properties": {
            **schema["properties"],
            "steps": {**steps, "anyOf": [listed, {"const": "tdd", "type": "string"}]},
        },
        "title": "Lockgate .lockgate/config.toml",
    }


# The tables as models.


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@cache
def model_of(table: type[Struct]) -> type[BaseModel]:
    keys: dict[str, Any] = {it.name: (_hint(it.type), _field(it)) for it in fields(table)}
    return create_model(table.__name__, __base__=_Model, **keys)


def _field(key: FieldInfo) -> object:
    alias = key.encode_name if key.encode_name != key.name else None
    if isinstance(key.default, Struct):
        return Field(default=model_of(type(key.default))(), alias=alias)
    if key.default_factory is not NODEFAULT:
        return Field(default=key.default_factory(), alias=alias)
    return Field(default=... if key.required else key.default, alias=alias)


def _hint(hint: Any) -> Any:  # noqa: ANN401 - a type, one of its parts, or its bounds
    """The same for pydantic: models for tables, fields for bounds, lists and words as they are."""
    if isinstance(hint, Meta):
        return _bounds(hint)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return model_of(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Annotated[hint, LOOSE]
    generic: Any = get_origin(hint)
    if generic in {None, Literal}:
        return cast("object", hint)
    parts = tuple(map(_hint, get_args(hint)))
    made: Any = (Union if generic is UnionType else generic)[parts]
    return Annotated[made, LOOSE] if generic is tuple else made


def _bounds(meta: Meta) -> object:
    given: dict[str, Any] = dict(meta.extra or {})
    given |= {name: getattr(meta, name) for name in BOUNDS}
    given["pattern"] = meta.pattern and meta.pattern.replace(r"\Z", "$")
    return Field(**given)


# Their words.


def _place(error: ErrorDetails) -> Path:
    return tuple(part for part in error["loc"] if part != "[key]")


def _wording(error: ErrorDetails, model: type[BaseModel]) -> str:
    path = _place(error)
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
