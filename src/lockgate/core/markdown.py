"""Sections of a Markdown text: its top-level headings of level 2, as CommonMark reads them.

One pass, linear in size. Text, simple lists and whole blocks at the margin are jumped over by one
search; where that cannot tell, `lockgate.core.blocks` reads line by line.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from lockgate.core.blocks import Blocks, Kind, Leaf

SECTION_LEVEL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """`start` is where its heading begins, `end` where the next level-1 or level-2 heading does."""

    title: str
    text: str
    start: int
    end: int


class _Heading(NamedTuple):
    level: int
    title: str
    start: int
    content: int


# A group is never possessive here: Python before 3.11.5 matches such a group wrongly.
_EOL = r"(?:(?=\n)|\Z)"
_CLOSED = rf" {{0,3}}(?P=fence)`*+[ \t]*+{_EOL}"
# How a line begins that is only text, wherever it stands.
_PLAIN = (
    r"(?:[^\s\d#`~<>=\-+*_]|#++[^\s#]|`{1,2}[^`\n]|~{1,2}[^~\n]|\*{1,2}[^\s*]|_{1,2}[^\s_]"
    r"|-{1,2}[^\s-]|\+[^\s]|\d++[^\n\d.)]|\d++[.)][^\s])"
)
# A line that is not blank, not text, and not a list item that begins with text. What begins a block
# of its own at the margin, whatever was open above, is taken whole where it is: `done`.
_TELLING = re.compile(
    r"\n(?=[^A-Za-z\n])(?:"
    r"(?P<heading>\#{1,2})[ \t]++(?P<title>[^\n]*+)"
    r"|(?P<done>\#{3,6}[ \t][^\n]*+"
    rf"|(?P<fence>`{{3,}}+)[^`\n]*+(?:\n(?!{_CLOSED})[^\n]*+)*\n(?={_CLOSED})[^\n]++"
    r"|<!(?=--)[^-]*+(?:-(?!->)[^-]*+)*-->[^\n]*+"
    rf"|>(?: ?{_PLAIN}[^\n]*+)?(?:\n>(?: ?{_PLAIN}[^\n]*+)?)*(?=\n\n))"
    rf"|(?![ \t]*+(?:(?:(?:[-*+]|\d{{1,9}}[.)])[ \t]++)?{_PLAIN}|{_EOL})))"
)
_FENCE_END = re.compile(rf"\n {{0,3}}(`{{3,}}+|~{{3,}}+)[ \t]*+{_EOL}")
_REFERENCE = re.compile(
    r" {0,3}\[(?!\])[^\[\]\\]*+(?:\\.[^\[\]\\]*+)*\]:[ \t]*+\n?[ \t]*+[^ \t\n]++"
    r"(?:[ \t]++(?:\"[^\"\n]*+\"|'[^'\n]*+'|\([^()\n]*+\)))?[ \t]*+(?:\n|\Z)"
)


def sections(body: str) -> tuple[Section, ...]:
    """The level-2 headings that stand in no code, comment, quote or list, in order."""
    found = _Reader(body).found
    ends = [*(it.start for it in found[1:]), len(body)]
    return tuple(
        Section(title=it.title, text=body[it.content : end], start=it.start, end=end)
        for it, end in zip(found, ends, strict=False)
        if it.level == SECTION_LEVEL
    )


def closer(body: str) -> str:
    """The line that closes a fence or an HTML block left open at the end, or nothing."""
    blocks = _Reader(body).blocks
    return "" if blocks.stack else blocks.closer


def one_newline(text: str) -> str:
    """The text with every line ending as a newline and every character where it was."""
    return text.replace("\r\n", " \n").replace("\r", "\n") if "\r" in text else text


class _Reader:
    """Reads once, at its making."""

    __slots__ = ("blocks", "found", "paragraph", "text")

    def __init__(self, body: str) -> None:
        self.text = one_newline(body)
        self.blocks = Blocks()
        self.found: list[_Heading] = []
        self.paragraph = 0
        at = self._look(0)
        while at < len(self.text):
            at = self._next(at)

    def _next(self, at: int) -> int:
        blocks = self.blocks
        if blocks.leaf is Leaf.FENCE or blocks.leaf is Leaf.HTML:
            return self._look(at if blocks.stack else self._end_of_leaf(at))
        hit = _TELLING.search(self.text, at - 1)
        if hit is None:
            return len(self.text)
        kind = hit.lastgroup
        if kind is None:
            at = self._look_up_to(at, hit.start() + 1)
            while self.text.startswith(">", at):  # else the search would try each line's quote anew
                at = self._look(at)
            return at
        blocks.leave_all()
        if kind != "done":
            mark, title = hit.group("heading", "title")
            self.found.append(_Heading(len(mark), _title(title), hit.start() + 1, hit.end() + 1))
        return hit.end() + 1

    def _look(self, at: int) -> int:
        """Read one line by the rules; the next one's place."""
        if at >= len(self.text):
            return at
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        kind = self.blocks.feed(self.text[at:end])
        if kind is Kind.TEXT:
            self.paragraph = at
        elif kind is Kind.HEADING and not self.blocks.stack:
            self._atx(at, end)
        elif kind is Kind.UNDERLINE and not self.blocks.stack:
            self._setext(at, end)
        return end + 1

    def _look_up_to(self, low: int, line: int) -> int:
        """Read that line, after those above it that say what it is in."""
        at = line
        # at the margin under an empty line, nothing is open
        while at > low and not (self.text.startswith("\n\n", at - 2) and self.text[at] > " "):
            at = max(self.text.rfind("\n\n", low, at - 1) + 2, low)
        if at > low:
            self.blocks.leave_all()
        while at <= line:
            at = self._look(at)
        return at

    def _end_of_leaf(self, at: int) -> int:
        """The line that may end the fence or HTML block that is open at top level."""
        if self.blocks.leaf is Leaf.HTML:
            end = self.blocks.html_end.search(self.text, at)
            return self.text.rfind("\n", 0, end.end()) + 1 if end else len(self.text)
        for hit in _FENCE_END.finditer(self.text, at - 1):
            if hit[1].startswith(self.blocks.closer):
                return hit.start() + 1
        return len(self.text)

    def _atx(self, at: int, end: int) -> None:
        line = self.text[at:end].lstrip(" ")
        title = line.lstrip("#")
        level = len(line) - len(title)
        if level <= SECTION_LEVEL:
            self.found.append(_Heading(level, _title(title), at, end + 1))

    def _setext(self, at: int, end: int) -> None:
        start = self.paragraph
        while reference := _REFERENCE.match(self.text, start, at):
            start = reference.end()
        level = 1 if "=" in self.text[at:end] else SECTION_LEVEL
        title = "\n".join(line.strip(" \t") for line in self.text[start : at - 1].split("\n"))
        if title:
            self.found.append(_Heading(level, title, start, end + 1))


def _title(text: str) -> str:
    """What stands between a heading's marks."""
    text = text.strip(" \t")
    bare = text.rstrip("#")
    if bare != text and (not bare or bare[-1] in " \t"):
        return bare.rstrip(" \t")
    return text
