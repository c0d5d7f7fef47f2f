"""CommonMark's block rules for one line: the quotes and list items it is in, and what it is."""

import re
from enum import Enum, auto

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
        match kind:
            case None:
                self.leaf = Leaf.PARAGRAPH
                return Kind.TEXT
            case Kind.CODE if fence := _fence(rest):
                self.leaf, self.closer = Leaf.FENCE, fence
            case Kind.HTML:
                self._begin_html(text)
            case _:
                pass
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
