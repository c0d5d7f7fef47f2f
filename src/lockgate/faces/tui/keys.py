"""The keys of the board: one table of actions, which `keys.toml` in the home may rebind."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from msgspec import Struct

# Where an action can be asked for.
LIST, REVIEW, ALWAYS = "list", "review", "always"


class Action(Struct, frozen=True):
    """`label` is for the row of keys at the bottom, `says` for the page of keys."""

    name: str
    keys: tuple[str, ...]
    label: str
    says: str
    where: str = LIST


ACTIONS = (
    Action("open", ("enter",), "open", "do what the task needs: review, answer, start, attach …"),
    Action("approve", ("a",), "approve", "read the change, then say yes (marked: to all of them)"),
    Action("land", ("m",), "land", "read the change, then let it land"),
    Action("reject", ("r",), "send back", "send it back to its agent with your words"),
    Action("why", ("w",), "why", "why it is where it is, and what moves it on"),
    Action("view", ("v",), "TASK.md", "its TASK.md"),
    Action("output", ("t",), "output", "what its agents print, live, up to four"),
    Action("diff", ("D",), "diff", "its change"),
    Action("editor", ("o",), "editor", "open its change in $VISUAL or $EDITOR"),
    Action("takeover", ("T",), "take over", "work on it yourself; again: hand it back"),
    Action("create", ("c",), "create", "a new task; only the goal is needed"),
    Action("cancel", ("x",), "cancel", "cancel it (asks first)"),
    Action("delete", ("d",), "delete", "delete it once it has ended (asks first)"),
    Action("copy", ("y",), "copy id", "copy its id"),
    Action("say", ("i",), "say", "send a message to its agent"),
    Action("queue", ("Q",), "queue", "hold it, let it land, take it out of the merge queue"),
    Action("seen", ("s",), "seen", "seen: dim this need for an hour"),
    Action("filter", ("f",), "filter", "show all, active, what needs you, ended"),
    Action("search", ("/",), "search", "only tasks with these words"),
    Action("projects", ("P",), "projects", "one project or all"),
    Action("mark", ("space",), "mark", "mark it; a, x, Q and Enter then act on all marked"),
    Action("next", ("n",), "next need", "the next task that needs you"),
    Action("previous", ("N",), "previous need", "the one before"),
    Action("board", ("1",), "board", "all tasks", ALWAYS),
    Action("inbox", ("2",), "inbox", "what needs you, in all projects", ALWAYS),
    Action("train", ("3",), "merge queue", "what lands next, and why not", ALWAYS),
    Action("stats", ("4",), "statistics", "what landed, what it cost", ALWAYS),
    Action("events", ("5",), "events", "what happens", ALWAYS),
    Action("zoom", ("z",), "zoom", "the list alone, the task alone, both"),
    Action("agents", ("f1",), "agents", "the agents at work"),
    Action("keys", ("?",), "keys", "this page", ALWAYS),
    Action("palette", (":", "ctrl+p"), "commands", "every command by its name", ALWAYS),
    Action(
        "back", ("escape",), "back", "back; on the board: clear marks, search and filter", ALWAYS
    ),
    Action("quit", ("q", "ctrl+c"), "quit", "leave; nothing that runs is stopped", ALWAYS),
    Action("down", ("j", "down"), "", "next line", ALWAYS),
    Action("up", ("k", "up"), "", "line before", ALWAYS),
    Action("page_down", ("pagedown", "ctrl+d"), "", "a page on", ALWAYS),
    Action("page_up", ("pageup", "ctrl+u"), "", "a page back", ALWAYS),
    Action("first", ("g", "home"), "", "the first line", ALWAYS),
    Action("last", ("G", "end"), "", "the last line", ALWAYS),
    Action("hunk", ("n",), "next hunk", "the next hunk", REVIEW),
    Action("hunk_before", ("p",), "hunk before", "the hunk before", REVIEW),
    Action("file", ("]",), "next file", "the next file", REVIEW),
    Action("file_before", ("[",), "file before", "the file before", REVIEW),
    Action("comment", ("c",), "comment", "comment on this line, or change your comment", REVIEW),
    Action("uncomment", ("X",), "drop comment", "delete your comment at this line", REVIEW),
    Action("split", ("s",), "split", "side by side, or one below the other", REVIEW),
    Action("unfold", ("enter",), "unfold", "open or close a large file", REVIEW),
)
# In the review these mean the same as on a list.
IN_REVIEW = ("approve", "land", "reject", "why", "view", "output", "editor", "copy")
FILE = "keys.toml"


class Keys(Struct, frozen=True):
    """Which key asks for what; `troubles` is what of keys.toml could not be taken."""

    table: tuple[Action, ...] = ACTIONS
    troubles: tuple[str, ...] = ()

    def action(self, pressed: Iterable[str], *, review: bool = False) -> str | None:
        """The action of a key, which may have several names."""
        names = frozenset(pressed)
        return next((it.name for it in self.offered(review=review) if names & {*it.keys}), None)

    def offered(self, *, review: bool) -> Iterator[Action]:
        """What can be asked for there; the review's own actions come first."""
        if review:
            yield from (it for it in self.table if it.where == REVIEW)
        for it in self.table:
            shared = it.name in IN_REVIEW and review
            if it.where == ALWAYS or shared or (it.where == LIST and not review):
                yield it

    def named(self, name: str) -> Action:
        return next(it for it in self.table if it.name == name)

    def key(self, name: str) -> str:
        """The first key of an action, as people write it."""
        return written(self.named(name).keys[0])


WRITTEN = {"enter": "Enter", "space": "Space", "escape": "Esc", "tab": "Tab", "f1": "F1"}


def written(key: str) -> str:
    if key.startswith("ctrl+"):
        return f"Ctrl-{key[5:]}"
    return WRITTEN.get(key, key)


def keys_of(home: Path) -> Keys:
    """The table, with what the home's keys.toml rebinds; a file that is wrong changes nothing."""
    try:
        said = tomllib.loads((home / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Keys()
    except (OSError, ValueError) as error:
        return Keys(troubles=(f"{FILE} was not read: {error}",))
    return rebound(said)


def rebound(said: Mapping[str, object]) -> Keys:
    wanted: dict[str, tuple[str, ...]] = {}
    troubles: list[str] = []
    known = {it.name for it in ACTIONS}
    for name, value in said.items():
        keys = _keys(value)
        if name == "theme":
            continue
        if name not in known:
            troubles.append(f"{FILE}: there is no action {name!r}")
        elif not keys:
            troubles.append(f"{FILE}: {name} must be a key or a list of keys")
        else:
            wanted[name] = keys
    table = tuple(
        Action(it.name, wanted.get(it.name, it.keys), it.label, it.says, it.where) for it in ACTIONS
    )
    clashes = [*_clashes(table, LIST), *_clashes(table, REVIEW)]
    if clashes:
        return Keys(troubles=(*troubles, *clashes))
    return Keys(table, tuple(troubles))


def theme_of(home: Path) -> str:
    """`theme` of keys.toml: dark or light."""
    try:
        said = tomllib.loads((home / FILE).read_text(encoding="utf-8")).get("theme", "")
    except (OSError, ValueError):
        return ""
    return said if isinstance(said, str) else ""


def _keys(value: object) -> tuple[str, ...]:
    found = cast("list[object]", value) if isinstance(value, list) else [value]  # as TOML has it
    return tuple(it.lower() if len(it) > 1 else it for it in found if isinstance(it, str) and it)


def _clashes(table: Iterable[Action], where: str) -> Iterator[str]:
    """A key that asks for two things in one place."""
    seen: dict[str, str] = {}
    for it in table:
        if it.where not in {where, ALWAYS}:
            continue
        for key in it.keys:
            if key in seen:
                yield f"{FILE} is not used: {key} is both {seen[key]} and {it.name}"
            seen[key] = it.name
