"""The part of YAML that a frontmatter may use: names with plain values and flat lists of them."""

import re
from collections.abc import Iterator

import yaml

from lockgate.core.text.task_file import BrokenFrontmatter

_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_CONSTANTS: dict[str, object] = {"true": True, "false": False, "null": None, "~": None, "": None}


def read_fields(text: str, first_line: int) -> dict[str, object] | BrokenFrontmatter:
    """Events are read one by one, so nothing is built or expanded that is not allowed."""
    try:
        return _fields(yaml.parse(text, Loader=yaml.SafeLoader))
    except _Unwanted as error:
        return BrokenFrontmatter(error.why, error.line + first_line)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        return BrokenFrontmatter(f"it is not YAML: {error.problem}", line + first_line)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position)
        return BrokenFrontmatter("it holds a character that YAML forbids", line + first_line)


class _Unwanted(Exception):
    def __init__(self, why: str, event: yaml.Event) -> None:
        super().__init__(why)
        self.why = why
        self.line = event.start_mark.line if event.start_mark else 0


def _fields(events: Iterator[yaml.Event]) -> dict[str, object]:
    fields: dict[str, object] = {}
    next(events)  # the stream begins
    first = next(events)
    if isinstance(first, yaml.StreamEndEvent):
        return fields
    _begin(next(events), yaml.MappingStartEvent, "it is not a list of names and values")
    while not isinstance(key := next(events), yaml.MappingEndEvent):
        name = _plain(key)
        if name in fields:
            raise _Unwanted(f"{name!r} stands there twice", key)
        fields[name] = _value(next(events), events)
    next(events)  # the document ends
    if not isinstance(last := next(events), yaml.StreamEndEvent):
        raise _Unwanted("it holds a second document", last)
    return fields


def _value(event: yaml.Event, events: Iterator[yaml.Event]) -> object:
    if not isinstance(event, yaml.SequenceStartEvent):
        return _resolved(event)
    _begin(event, yaml.SequenceStartEvent, "")
    items: list[object] = []
    while not isinstance(item := next(events), yaml.SequenceEndEvent):
        items.append(_resolved(item))
    return items


def _begin(event: yaml.Event, wanted: type[yaml.CollectionStartEvent], why: str) -> None:
    if not isinstance(event, wanted):
        raise _Unwanted(why, event)
    if event.anchor or event.tag:
        raise _Unwanted("anchors and tags are not allowed", event)


def _plain(event: yaml.Event) -> str:
    if isinstance(event, yaml.AliasEvent):
        raise _Unwanted("aliases are not allowed", event)
    if not isinstance(event, yaml.ScalarEvent):
        raise _Unwanted("only strings, numbers and flat lists are allowed", event)
    if event.anchor or event.tag:
        raise _Unwanted("anchors and tags are not allowed", event)
    return str(event.value)


def _resolved(event: yaml.Event) -> object:
    """Quoted is a string; bare is what it looks like, and a date looks like a string."""
    text = _plain(event)
    if not getattr(event, "implicit", (True,))[0]:
        return text
    if _NUMBER.fullmatch(text):
        return int(text)
    return _CONSTANTS.get(text, text)
