"""How the board looks: lines of spans with named styles, in colours or none, in UTF-8 or ASCII.

Every text of agents, git or people comes in by `shown` or `one`, which let no escape through.
"""

import locale
import os
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

from lockgate.faces.words.task import one_line, safe

Span = tuple[str, str]  # a text, and the name of its style
Line = tuple[Span, ...]
Lines = Sequence[Line]

LONGEST = 2_000  # characters of one line that are looked at; no terminal is wider
BLANK: Line = ()

DARK = {
    "plain": "#d8dee9",
    "dim": "#8a94a6",
    "rule": "#4c566a",
    "head": "bold #eceff4",
    "need": "bold #ffb454",
    "busy": "#7cc4ff",
    "ok": "#7cc4ff",
    "bad": "bold #ff9e64",
    "add": "#7cc4ff",
    "del": "#ffb454",
    "key": "bold #eceff4",
    "mark": "bold #d7a6ff",
    "cursor": "on #2a3a52",
    "pale": "on #222b3a",
    "bar": "on #1b2331",
    "hot": "bold #10151d on #ffb454",
    "tab": "bold #10151d on #7cc4ff",
}
LIGHT = {
    "plain": "#24292f",
    "dim": "#5f6873",
    "rule": "#b3bac2",
    "head": "bold #000000",
    "need": "bold #9a4a00",
    "busy": "#0550ae",
    "ok": "#0550ae",
    "bad": "bold #b33c00",
    "add": "#0550ae",
    "del": "#9a4a00",
    "key": "bold #000000",
    "mark": "bold #6f42c1",
    "cursor": "on #cfe3fb",
    "pale": "on #e6edf5",
    "bar": "on #e8ecf1",
    "hot": "bold #ffffff on #9a4a00",
    "tab": "bold #ffffff on #0550ae",
}
NO_COLOURS = {
    "plain": "",
    "dim": "",
    "rule": "",
    "head": "bold",
    "need": "bold",
    "busy": "",
    "ok": "",
    "bad": "bold",
    "add": "",
    "del": "",
    "key": "bold",
    "mark": "bold",
    "cursor": "reverse",
    "pale": "reverse",
    "bar": "reverse",
    "hot": "bold underline",
    "tab": "bold underline",
}
THEMES = {
    "dark": Theme(
        name="lockgate-dark",
        primary="#7cc4ff",
        secondary="#d7a6ff",
        accent="#ffb454",
        warning="#ffb454",
        error="#ff9e64",
        success="#7cc4ff",
        foreground="#d8dee9",
        background="#10151d",
        surface="#161d28",
        panel="#1b2331",
        dark=True,
    ),
    "light": Theme(
        name="lockgate-light",
        primary="#0550ae",
        secondary="#6f42c1",
        accent="#9a4a00",
        warning="#9a4a00",
        error="#b33c00",
        success="#0550ae",
        foreground="#24292f",
        background="#fcfcfa",
        surface="#f3f4f6",
        panel="#e8ecf1",
        dark=False,
    ),
    "plain": Theme(
        name="lockgate-plain",
        primary="ansi_default",
        secondary="ansi_default",
        accent="ansi_default",
        warning="ansi_default",
        error="ansi_default",
        success="ansi_default",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        dark=True,
        ansi=True,
        variables=BUILTIN_THEMES["ansi-dark"].variables,
    ),
}
# What stands for a mark where the terminal has no UTF-8.
ASCII: Mapping[str, str] = {
    "·": ".",
    "▸": ">",
    "◇": "o",
    "◆": "#",
    "‖": "=",
    "✓": "+",
    "–": "-",
    "✗": "x",
    "●": "*",
    "○": "o",
    "█": "#",
    "░": ".",
    "─": "-",
    "│": "|",
    "…": "~",
    "→": ">",
    "☺": "@",
    "▁": "_",
    "▂": "_",
    "▃": "-",
    "▄": "-",
    "▅": "=",
    "▆": "=",
    "▇": "#",
}
_TO_ASCII = str.maketrans(dict(ASCII))


class Look(Struct, frozen=True):
    """The colours and the marks of one terminal."""

    colours: str = "dark"  # dark, light or plain
    utf8: bool = True

    @property
    def theme(self) -> Theme:
        return THEMES[self.colours]

    def style(self, name: str) -> Style:
        table = {"dark": DARK, "light": LIGHT, "plain": NO_COLOURS}[self.colours]
        return _parsed(table.get(name, ""))

    def text(self, text: str) -> str:
        """As this terminal can show it."""
        if self.utf8 or text.isascii():
            return text
        return text.translate(_TO_ASCII).encode("ascii", "replace").decode()


_STYLES: dict[str, Style] = {}


def _parsed(named: str) -> Style:
    if named not in _STYLES:
        _STYLES[named] = Style.parse(named) if named else Style.null()
    return _STYLES[named]


def look_of(environ: Mapping[str, str] = os.environ, chosen: str = "") -> Look:
    """By the user's word, NO_COLOR, and what the terminal says of its background."""
    utf8 = "utf" in (locale.getencoding() if environ is os.environ else _charset(environ)).lower()
    if environ.get("NO_COLOR"):
        return Look("plain", utf8)
    wanted = chosen or environ.get("LOCKGATE_THEME", "")
    if wanted in THEMES:
        return Look(wanted, utf8)
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return Look("light" if background in {"7", "15"} else "dark", utf8)


def _charset(environ: Mapping[str, str]) -> str:
    return next((environ[it] for it in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(it)), "")


# Texts of others, and lines.


def shown(text: str) -> str:
    """One line of a text as it is, without what moves a cursor; of a long one, its beginning."""
    return safe(text[:LONGEST]).replace("\t", "    ").replace("\n", " ")


def one(text: str) -> str:
    """A text in one line."""
    return one_line(text[:LONGEST])


def wide(text: str) -> int:
    return cell_len(text)


def cut(text: str, to: int) -> str:
    """At most that wide, with an ellipsis where something was cut off."""
    if to <= 0:
        return ""
    return text if cell_len(text) <= to else set_cell_size(text, to - 1).rstrip() + "…"


def cell(text: str, to: int, *, right: bool = False) -> str:
    """Exactly that wide."""
    text = cut(text, to)
    space = " " * (to - cell_len(text))
    return space + text if right else text + space


def length(line: Line) -> int:
    return sum(cell_len(text) for text, _ in line)


def joined(parts: Iterable[Line], between: str = "  ") -> Line:
    spans: list[Span] = []
    for part in parts:
        spans += [(between, "plain")] if spans and part else []
        spans += part
    return tuple(spans)


def spread(left: Line, right: Line, to: int) -> Line:
    """The two at both ends of a line; where there is no room for the right one, the left alone."""
    space = to - length(left) - length(right)
    return (*left, (" " * space, "plain"), *right) if space >= 1 else left


def wrapped(text: str, to: int, style: str = "plain", indent: str = "") -> list[Line]:
    """A text of others in lines of at most that width, its own line breaks kept."""
    lines: list[Line] = []
    for paragraph in text.split("\n"):
        lines += [((indent + it, style),) for it in _folded(shown(paragraph), to - len(indent))]
    return lines


def _folded(text: str, to: int) -> list[str]:
    if to <= 0 or cell_len(text) <= to:
        return [text]
    lines = [""]
    for word in text.split(" "):
        joint = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(joint) <= to or not lines[-1].strip():
            lines[-1] = joint
        else:
            lines.append(word)
    return [piece for it in lines for piece in _broken(it, to)]


def _broken(word: str, to: int) -> list[str]:
    """A word that is wider than the line goes on in the next one."""
    pieces: list[str] = []
    while cell_len(word) > to:
        piece = set_cell_size(word, to).rstrip(" ")
        taken = piece if piece and word.startswith(piece) else word[:1]
        pieces.append(taken)
        word = word[len(taken) :]
    return [*pieces, word]


def plain_text(lines: Iterable[Line]) -> str:
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)
