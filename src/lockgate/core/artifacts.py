"""Artifacts: the sections of TASK.md that count, as Lockgate reads them from the text itself."""

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from lockgate.core.blocks import Blocks, Kind
from lockgate.core.markdown import Section, closer, one_newline, sections

WORKER_SECTIONS = frozenset({"Questions", "Notes", "Handoff"})
REVIEWER_SECTIONS = frozenset({"Review"})


class Verdict(StrEnum):
    """What a review says."""

    PASS = "pass"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """What is there of a task's Handoff and Review, and in words what is wrong with the rest."""

    handoff: str | None = None
    handoff_digest: str | None = None
    review: str | None = None
    review_digest: str | None = None
    verdict: Verdict | None = None
    problems: tuple[str, ...] = ()

    @property
    def has_handoff(self) -> bool:
        return self.handoff is not None

    @property
    def has_review(self) -> bool:
        return self.review is not None


_WORD = re.compile(r"\b_{0,3}(PASS|FAIL)_{0,3}\b", re.IGNORECASE | re.ASCII)
_MARK = r"[*_#`+\- \t]"
# PASS with nothing before it but markup or `Verdict:`, and after it the line's end or punctuation.
_PASS_LINE = re.compile(
    rf"{_MARK}*+(?:[0-9]{{1,9}}[.)][ \t]{_MARK}*+)*"
    rf"(?P<named>Verdict{_MARK}*+:{_MARK}*+)?PASS[*_`]*+"
    r"(?:[ \t#]*+\Z|[ \t]*+(?:[.,:;!]|[-\u2013\u2014]++(?=[ \t]))[*_`]*+(?:[ \t]|\Z)|[ \t]\()",
    re.IGNORECASE | re.ASCII,
)
_SENTENCE_ENDS = (".", ":", "!", "?", ";")
_SKIPPED = frozenset({Kind.CODE, Kind.QUOTE, Kind.BLANK})
_CONTENT = re.compile(r"[^\W_]")
_CUT = " <!-- the file ended inside this line -->"


def parse_task_artifacts(body: str) -> Artifacts:
    """Read the text below the frontmatter. Twice the same section, or an empty one, is none."""
    found = sections(body)
    handoff, no_handoff = _only(found, "Handoff")
    review, no_review = _only(found, "Review")
    verdict = None if review is None else extract_review_verdict(review)
    problems = [it for it in (no_handoff, no_review) if it]
    if review is not None and verdict is None:
        problems.append(
            "TASK.md has a '## Review' without a verdict: its first line must be PASS or FAIL"
        )
    return Artifacts(
        handoff=None if handoff is None else handoff.strip(),
        handoff_digest=None if handoff is None else digest(handoff),
        review=None if review is None else review.strip(),
        review_digest=None if review is None else digest(review),
        verdict=verdict,
        problems=tuple(problems),
    )


def extract_review_verdict(review_section: str) -> Verdict | None:
    """The first line with PASS or FAIL decides: FAIL as found, PASS only as a whole verdict line.

    A line counts for PASS only when its end is written too, so that no text cut short passes.
    """
    lines = one_newline(review_section).split("\n")
    unfinished = lines.pop()
    blocks = Blocks()
    above = ""
    inside = False
    for line in [*lines, unfinished + _CUT]:
        kind = blocks.feed(line)
        if kind in _SKIPPED:
            continue
        was_inside = inside
        shown, hidden, inside = _without_comments(line, inside=inside)
        doubtful = kind is not Kind.HTML and (was_inside or inside or "`" in line)
        if doubtful and _WORD.search(hidden):
            return None  # in running text, what a comment hides depends on the reader
        words = {word.upper() for word in _WORD.findall(shown)}
        if words:
            whole = words == {"PASS"} and shown == line and kind is not Kind.HTML
            if whole and _passes(line, kind, above):
                return Verdict.PASS
            return Verdict.FAIL if words == {"FAIL"} else None
        above = line
    return None


def digest(text: str) -> str:
    """The same for texts that differ in line endings and in white space at line ends only."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return hashlib.sha256("\n".join(lines).strip("\n").encode("utf-8", "replace")).hexdigest()


def merge_sections(canonical: str, incoming: str, names: frozenset[str]) -> str:
    """Take the sections so named out of `incoming`; what it lacks stays, and so does all else.

    A section that `incoming` has twice is carried twice, so that the problem stays to be seen.
    """
    carried: dict[str, str] = {}
    for it in sections(incoming):
        if it.title in names:
            carried[it.title] = carried.get(it.title, "") + _rendered(it.title, it.text)
    merged = canonical
    for title, text in carried.items():
        merged = _put(merged, title, text)
    return canonical if merged == canonical else merged.rstrip("\n") + "\n"


def only_sections(body: str, names: Collection[str]) -> str:
    """These sections, and nothing else of the text."""
    return "\n".join(_rendered(it.title, it.text) for it in sections(body) if it.title in names)


def replace_section(body: str, title: str, text: str) -> str:
    """Make `text` what stands under that heading, once."""
    return _put(body, title, _rendered(title, f"\n{text.rstrip()}\n"))


def _only(found: tuple[Section, ...], title: str) -> tuple[str | None, str | None]:
    """The text of the one section with that title; else why there is none, if it was tried."""
    texts = [it.text for it in found if it.title == title]
    if len(texts) > 1:
        many = "two" if len(texts) == 2 else str(len(texts))  # noqa: PLR2004
        return None, f"TASK.md has {many} '## {title}' sections; keep one"
    if not texts:
        return None, None
    shown, _, _ = _without_comments(texts[0], inside=False)
    if not _CONTENT.search(shown):
        return None, f"TASK.md has a '## {title}' section with nothing in it"
    return texts[0], None


def _passes(line: str, kind: Kind, above: str) -> bool:
    """A verdict line, and not the wrapped end of a sentence such as "does not / pass."."""
    found = _PASS_LINE.match(line)
    if found is None:
        return False
    opens = kind is not Kind.MORE or above.rstrip(" \t*_`").endswith(_SENTENCE_ENDS)
    return opens or found["named"] is not None


def _without_comments(text: str, *, inside: bool) -> tuple[str, str, bool]:
    """What is outside HTML comments, what is inside, and whether one is open at the end."""
    shown: list[str] = []
    hidden: list[str] = []
    at = 0
    while True:
        stop = text.find("-->" if inside else "<!--", at)
        (hidden if inside else shown).append(text[at:] if stop < 0 else text[at:stop])
        if stop < 0:
            return "".join(shown), "".join(hidden), inside
        at = stop + (3 if inside else 2)  # `<!-->` is a whole comment
        inside = not inside


def _put(body: str, title: str, text: str) -> str:
    """Write a section where the first of its title is, or at the end; its other copies go."""
    present = [it for it in sections(body) if it.title == title]
    if not present:
        return _apart(_ended(body)) + text
    parts = [body[: present[0].start]]
    for it, after in zip(present, (*present[1:], None), strict=True):
        parts.append(body[it.end : after.start if after else None])
    *between, last = [it for it in parts[1:] if it] or [""]
    rest = "".join(_apart(it) for it in between) + last
    return parts[0] + (_apart(text) + rest if rest else text)


def _rendered(title: str, text: str) -> str:
    return _ended(f"## {title}\n{text}")


def _ended(text: str) -> str:
    """The text with its last line and block closed, and a verdict that was cut short still so."""
    last = text[max(text.rfind("\n"), text.rfind("\r")) + 1 :]
    if last:
        text += f"{_CUT}\n" if _WORD.search(last) else "\n"
    end = closer(text)
    return f"{text}{end}\n" if end else text


def _apart(text: str) -> str:
    """The text with an empty line after it, if there is any text."""
    return text if not text or text.endswith(("\n\n", "\r\n\r\n")) else f"{text}\n"
