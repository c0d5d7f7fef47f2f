"""The part of CommonMark that TASK.md needs: each line's kind, and a text's sections."""

import re
from enum import Enum, auto
from typing import NamedTuple

from msgspec import Struct

QUOTE = 0  # on the stack of containers; a list item is there as its content's offset, 2 or more
DEEPEST = 50  # markers nested deeper are read as text, so that time stays linear
INDENTED = 4


class Kind(Enum):
    """What a line is, once the containers around it are taken off."""

    BLANK = auto()
    TEXT = auto()  # a paragraph begins
    MORE = auto()  # a paragraph runs on
    HEADING = auto()
    UNDERLINE = auto()  # makes the paragraph above it a heading
    BREAK = auto()
    CODE = auto()
    HTML = auto()
    QUOTE = auto()  # anything inside a block quote


class Leaf(Enum):
    """The block that the next line may run on."""

    NONE = auto()
    PARAGRAPH = auto()
    FENCE = auto()
    HTML = auto()


_HEADING = re.compile(r"#{1,6}(?: |\Z)")
_UNDERLINE = re.compile(r"(?:=++|-++) *+\Z")
_BREAK = re.compile(r"(?:(?:\* *+){3,}|(?:- *+){3,}|(?:_ *+){3,})\Z")
_FENCE = re.compile(r"(`{3,}+)[^`]*+\Z|(~{3,}+)")
_ITEM = re.compile(r"([-+*]|(\d{1,9})[.)])( ++|\Z)")

_BLANK_LINE = re.compile(r"^[ \t]*+$", re.MULTILINE)
_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details"
    "|dialog|dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header"
    "|hr|html|iframe|legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param"
    "|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul"
)
_ATTRIBUTE = r" ++[A-Za-z_:][A-Za-z0-9_.:-]*+(?: *+= *+(?:[^ \"'=<>`]++|'[^']*+'|\"[^\"]*+\"))?"
_NAME = r"[A-Za-z][A-Za-z0-9-]*+"
_RAW = "script|pre|style|textarea"
_HtmlRule = tuple[re.Pattern[str], re.Pattern[str], str]
_ANY_CASE = re.IGNORECASE | re.ASCII
# How an HTML block begins, where it ends, and what can be written to end it.
_HTML: tuple[_HtmlRule, ...] = (
    (
        re.compile(rf"<(?:{_RAW})(?:[ >]|\Z)", _ANY_CASE),
        re.compile(rf"</(?:{_RAW})>", _ANY_CASE),
        "</pre>",
    ),
    (re.compile(r"<!--"), re.compile(r"-->"), "-->"),
    (re.compile(r"<\?"), re.compile(r"\?>"), "?>"),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>"), "]]>"),
    (re.compile(r"<![A-Za-z]"), re.compile(r">"), ">"),
    (re.compile(rf"</?(?:{_TAGS})(?: |/?>|\Z)", _ANY_CASE), _BLANK_LINE, ""),
)
# Any other whole tag alone on its line; it cannot break into a paragraph.
_OTHER: _HtmlRule = (
    re.compile(
        rf"(?:<(?!(?:{_RAW})[ />]){_NAME}(?:{_ATTRIBUTE})* *+/?+>|</{_NAME} *+>) *+\Z", _ANY_CASE
    ),
    _BLANK_LINE,
    "",
)


class Blocks:
    """Fed line by line, it knows the containers and the leaf that are open."""

    __slots__ = ("_empty_item", "closer", "html_end", "leaf", "stack")

    def __init__(self) -> None:
        self.stack: list[int] = []
        self.leaf = Leaf.NONE
        self.closer = ""  # the line that would end the open fence or HTML block
        self.html_end = _BLANK_LINE
        self._empty_item = False

    def leave_all(self) -> None:
        """As at the beginning."""
        self._leave(0)
        self._empty_item = False

    def feed(self, line: str) -> Kind:
        """Take the next line, without its ending, and say what it is."""
        rest, depth = self._enter(line.expandtabs(4) if "\t" in line else line)
        if self.leaf in (Leaf.FENCE, Leaf.HTML):
            if depth == len(self.stack):
                return self._seen(self._run_on(rest))
            self._leave(depth)
        rest, depth, running = self._open_containers(rest, depth)
        return self._seen(self._leaf_line(rest, depth, running=running))

    def _enter(self, line: str) -> tuple[str, int]:
        """Take off the markers of the containers that the line is in, and count those."""
        empty_item, self._empty_item = self._empty_item, False
        for depth, offset in enumerate(self.stack):
            text = line.lstrip(" ")
            indent = len(line) - len(text)
            if offset == QUOTE:
                if indent >= INDENTED or not text.startswith(">"):
                    return line, depth
                line = text[1:].removeprefix(" ")
            elif text:
                if indent < offset:
                    return line, depth
                line = line[offset:]
            elif empty_item and depth == len(self.stack) - 1:
                return line, depth
        return line, len(self.stack)

    def _open_containers(self, rest: str, depth: int) -> tuple[str, int, bool]:
        """Open what the line opens; and last: whether it can run on the paragraph above."""
        running = self.leaf is Leaf.PARAGRAPH and depth == len(self.stack)
        while depth < DEEPEST:
            text = rest.lstrip(" ")
            indent = len(rest) - len(text)
            if indent >= INDENTED or not text:
                break
            if text[0] == ">":
                offset, inner = QUOTE, text[1:].removeprefix(" ")
            else:
                width, inner = _item(text, running=running)
                if not width:
                    break
                offset = indent + width
            self._leave(depth)
            self.stack.append(offset)
            self._empty_item = offset != QUOTE and not inner
            rest, depth, running = inner, depth + 1, False
        return rest, depth, running

    def _leaf_line(self, rest: str, depth: int, *, running: bool) -> Kind:
        text = rest.lstrip(" ")
        if not text:
            self._leave(depth)
            return Kind.BLANK
        if len(rest) - len(text) >= INDENTED:
            kind = None if self.leaf is Leaf.PARAGRAPH else Kind.CODE
        else:
            kind = self._begins(text, running=running)
        if kind is None and self.leaf is Leaf.PARAGRAPH:
            return Kind.MORE  # perhaps lazily: then the containers it is not in stay open too
        self._leave(depth)
        if kind is None:
            self.leaf = Leaf.PARAGRAPH
            return Kind.TEXT
        if kind is Kind.CODE and (fence := _fence(rest)):
            self.leaf, self.closer = Leaf.FENCE, fence
        elif kind is Kind.HTML:
            self._begin_html(text)
        return kind

    def _begins(self, text: str, *, running: bool) -> Kind | None:
        """What begins here, or nothing but text."""
        if _HEADING.match(text):
            return Kind.HEADING
        if _FENCE.match(text):
            return Kind.CODE
        if text[0] == "<" and _html(text, alone=self.leaf is not Leaf.PARAGRAPH):
            return Kind.HTML
        if running and _UNDERLINE.match(text):
            return Kind.UNDERLINE
        return Kind.BREAK if _BREAK.match(text) else None

    def _begin_html(self, text: str) -> None:
        _, end, closer = _html(text, alone=True) or _OTHER
        if not end.search(text):
            self.leaf, self.html_end, self.closer = Leaf.HTML, end, closer

    def _run_on(self, rest: str) -> Kind:
        """A line inside a fence or an HTML block, perhaps its last."""
        if self.leaf is Leaf.HTML:
            kind = Kind.HTML if rest.strip(" ") else Kind.BLANK
            ended = self.html_end.search(rest) is not None
        else:
            kind = Kind.CODE
            ended = _fence(rest).startswith(self.closer) and not rest.strip(" " + self.closer[0])
        if ended:
            self._leave(len(self.stack))
        return kind

    def _leave(self, depth: int) -> None:
        del self.stack[depth:]
        self.leaf, self.closer = Leaf.NONE, ""

    def _seen(self, kind: Kind) -> Kind:
        return Kind.QUOTE if QUOTE in self.stack else kind


def _item(text: str, *, running: bool) -> tuple[int, str]:
    """The width of a list item's marker with the space after it, or 0; and what the item holds."""
    marker = _ITEM.match(text)
    if marker is None or _BREAK.match(text):
        return 0, text
    inner = text[marker.end() :]
    if running and (not inner or int(marker[2] or 1) != 1):
        return 0, text
    if not inner or len(marker[3]) > INDENTED:
        width = marker.end(1) + 1
        return width, text[width:] if inner else ""
    return marker.end(), inner


def _fence(rest: str) -> str:
    """The backticks or tildes that begin a fence, or nothing."""
    found = _FENCE.match(rest.lstrip(" "))
    if found is None or rest.startswith("    "):
        return ""
    return str(found[1] or found[2])


def _html(text: str, *, alone: bool) -> _HtmlRule | None:
    for rule in _HTML:
        if rule[0].match(text):
            return rule
    return _OTHER if alone and _OTHER[0].match(text) else None


# Sections of a Markdown text: its top-level headings of level 2, as CommonMark reads them.
#
# One pass, linear in size. Text, simple lists and whole blocks at the margin are jumped over by one
# search; where that cannot tell, `lockgate.core.text.markdown` reads line by line.


SECTION_LEVEL = 2


class Section(Struct, frozen=True, kw_only=True):
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
            while self.text.startswith(
                ">", at
            ):  # else the search would try each line's quote again
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
