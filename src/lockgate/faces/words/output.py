"""An agent's output for people: what it said and which tools it used."""

import json
from collections.abc import Iterator, Mapping
from typing import cast

Block = Mapping[str, object]
HEARD = frozenset({"user", "tool_result"})  # what was said to the agent, not by it
SAID = ("text", "content", "message")
TOOLS = ("tool_name", "tool", "name", "command")
ABOUT = ("command", "file_path", "filePath", "path", "pattern", "query", "url", "description")
LONGEST = 160


def readable(lines: list[str]) -> Iterator[str]:
    """Events as words, and what is no event as it is; a line that is cut is passed over."""
    for line in lines:
        if not line.startswith("{"):
            yield line
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        yield from _told(cast("Block", event))  # what begins with a brace is an object


def _told(event: Block) -> Iterator[str]:
    if event.get("type") in HEARD or event.get("role") in HEARD:
        return
    for block in _blocks(event):
        said, tool = _first(block, SAID), _first(block, TOOLS)
        if tool and block.get("type") not in HEARD:
            yield f"> {tool} {_about(block)}"[:LONGEST].rstrip()
        elif said and block.get("type") not in HEARD:
            yield from said.splitlines()


def _blocks(event: Block) -> Iterator[Block]:
    """Where the programs put what they say: a message's content, an item, a part, or the event."""
    content = _inner(event, "message").get("content")
    if isinstance(content, list):
        items = cast("list[object]", content)
        yield from (cast("Block", it) for it in items if isinstance(it, dict))
        return
    yield _inner(event, "item") or _inner(event, "part") or event


def _about(block: Block) -> str:
    """The one thing of a tool's arguments that says most."""
    given = _inner(block, "input") or _inner(block, "parameters") or _inner(block, "state", "input")
    return " ".join(_first(given, ABOUT).split())


def _inner(block: Block, *keys: str) -> Block:
    for key in keys:
        value = block.get(key)
        block = cast("Block", value) if isinstance(value, dict) else {}
    return block


def _first(block: Block, names: tuple[str, ...]) -> str:
    values = (block.get(name) for name in names)
    return next((it for it in values if isinstance(it, str) and it.strip()), "")
