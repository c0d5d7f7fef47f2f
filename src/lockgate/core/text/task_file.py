"""TASK.md as text: its frontmatter, its sections, the artifacts and the verdict."""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from lockgate.core.model.task import Role, Task
from lockgate.core.text.markdown import Blocks, Kind, Section, closer, one_newline, sections

MOST = 1_000_000


class Readable(Struct, frozen=True):
    """The text of one reading; `digest` is of the very bytes."""

    frontmatter: str | None
    body: str
    digest: str


class Missing(Struct, frozen=True):
    """There is no such file."""


class Unreadable(Struct, frozen=True):
    """Something is there that is no honest text file. Three parts, as in an error's message."""

    what: str
    why: str
    fix: str


TaskText = Readable | Missing | Unreadable


class BrokenFrontmatter(Struct, frozen=True):
    """Why the frontmatter is not what TASK.md may hold, and the line of the file, from 1."""

    why: str
    line: int


def count_in(fields: Mapping[str, object], name: str) -> int | BrokenFrontmatter:
    """A counter such as `crash_count`; missing reads as 0."""
    found = fields.get(name, 0)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= MOST:
        why = f"{name} is {found!r}, and must be a whole number from 0 to {MOST:,}"
        return BrokenFrontmatter(why, 1)
    return found


# The frontmatter of TASK.md: the row's machine fields, as people and agents read them.


RESERVED = ("Handoff", "Review", "Questions")


def frontmatter(task: Task) -> dict[str, str | int]:
    """The goal is a field of its own only where an agent has rewritten the summary."""
    return {
        "id": task.id,
        "summary": task.summary,
        **({"goal": task.goal} if task.goal != task.summary else {}),
        "branch": task.branch,
        "status": task.status.value,
        "iteration": task.iteration,
        "review_round": task.review_round,
        "crash_count": task.crash_count,
    }


def shown_to(task: Task, role: Role) -> Task:
    """A reviewer judges by what a human asked for, so the summary that it reads is the goal."""
    return replace(task, summary=task.goal) if role is Role.REVIEWER else task


# Artifacts: the sections of TASK.md that count, as Lockgate reads them from the text itself.


WORKER_SECTIONS = frozenset({"Questions", "Notes", "Handoff"})
REVIEWER_SECTIONS = frozenset({"Review"})

VERDICT_RULE = (
    "its first line must be PASS or FAIL, alone on the line,"
    " and below PASS no line may say FAIL, give a verdict again or start with P0 or P1"
)


class Verdict(StrEnum):
    """What a review says."""

    PASS = "pass"
    FAIL = "fail"


class Artifacts(Struct, frozen=True, kw_only=True):
    """What is there of a task's sections, and in words what is wrong with the rest."""

    handoff: str | None = None
    handoff_digest: str | None = None
    review: str | None = None
    review_digest: str | None = None
    verdict: Verdict | None = None
    questions: str = ""
    questions_digest: str = ""
    problems: tuple[str, ...] = ()

    @property
    def has_handoff(self) -> bool:
        return self.handoff is not None

    @property
    def has_review(self) -> bool:
        return self.review is not None


_WORD = re.compile(r"\b_{0,3}(PASS|FAIL)_{0,3}\b", re.IGNORECASE | re.ASCII)
_MARK = r"[*_#`+\- \t]"
# Markup, a label or none, PASS, perhaps one full stop or exclamation mark, and nothing else.
_PASS_LINE = re.compile(
    rf"{_MARK}*+(?:[0-9]{{1,9}}[.)][ \t]{_MARK}*+)*"
    rf"(?P<named>(?:Verdict|PASS/FAIL){_MARK}*+:{_MARK}*+)?PASS[*_`]*+[.!]?[*_`]*+[ \t#]*+\Z",
    re.IGNORECASE | re.ASCII,
)
# Below a PASS, each of these takes the PASS back.
_OTHER_VERDICT = re.compile(rf"FAIL|(?i:Verdict){_MARK}*+:", re.ASCII)
_BLOCKING_LINE = re.compile(
    r"[^0-9A-Za-z]*+(?:[0-9]{1,9}[.)][^0-9A-Za-z]++)*P[01](?![0-9A-Za-z])", re.IGNORECASE | re.ASCII
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
    asked, _ = _only(found, "Questions")
    verdict = None if review is None else extract_review_verdict(review)
    problems = [it for it in (no_handoff, no_review) if it]
    if review is not None and verdict is None:
        problems.append(f"TASK.md has a '## Review' without a verdict: {VERDICT_RULE}")
    return Artifacts(
        handoff=None if handoff is None else handoff.strip(),
        handoff_digest=None if handoff is None else digest(handoff),
        review=None if review is None else review.strip(),
        review_digest=None if review is None else digest(review),
        verdict=verdict,
        questions="" if asked is None else asked.strip(),
        questions_digest="" if asked is None else digest(asked),
        problems=tuple(problems),
    )


def extract_review_verdict(review_section: str) -> Verdict | None:
    """The first line with PASS or FAIL decides: FAIL as found, PASS only as a whole verdict line.

    A PASS counts only if no later line takes it back, and only when the end of its own line is
    written too, so that a text that was cut short on that line does not pass.
    """
    verdict: Verdict | None = None
    lines = _read_lines(review_section)
    above = ""
    inside = False
    for line, kind in lines:
        was_inside = inside
        shown, hidden, inside = _without_comments(line, inside=inside)
        doubtful = kind is not Kind.HTML and (was_inside or inside or "`" in line)
        if doubtful and _WORD.search(hidden):
            return None  # in running text, what a comment hides depends on the reader
        words = {word.upper() for word in _WORD.findall(shown)}
        if words:
            whole = shown == line and kind not in (Kind.HTML, Kind.QUOTE)
            if whole and _passes(line, kind, above):
                verdict = Verdict.PASS
                break
            return Verdict.FAIL if words == {"FAIL"} else None
        above = line
    return None if any(_takes_back(line) for line, _ in lines) else verdict


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


def without_old(body: str, spent: Collection[str]) -> str:
    """The text with one `## Handoff` and one `## Questions`: what was used before is put away.

    Of several with the same title the used, the empty and the copies go. What is new in several is
    joined in order; where none is new the last one stays.
    """
    for title in ("Handoff", "Questions"):
        body = _without_old(body, title, spent)
    return body


def _without_old(body: str, title: str, spent: Collection[str]) -> str:
    if body.count(title) < 2:  # noqa: PLR2004 - it takes two
        return body
    found = [it.text for it in sections(body) if it.title == title]
    if len(found) < 2:  # noqa: PLR2004 - as above
        return body
    told = {
        digest(it): it for it in found if _CONTENT.search(_without_comments(it, inside=False)[0])
    }
    new = [text.strip() for known, text in told.items() if known not in spent]
    return replace_section(body, title, "\n\n".join(new) or found[-1].strip())


def only_sections(body: str, names: Collection[str]) -> str:
    """These sections, and nothing else of the text."""
    return "\n".join(_rendered(it.title, it.text) for it in sections(body) if it.title in names)


def section_text(body: str, title: str) -> str:
    """What stands under that heading, without empty lines around; empty where it is missing."""
    return "\n\n".join(it.text.strip() for it in sections(body) if it.title == title)


def replace_section(body: str, title: str, text: str) -> str:
    """Make `text` what stands under that heading, once."""
    return _put(body, title, _rendered(title, f"\n{text.rstrip()}\n"))


def without_section(body: str, title: str) -> str:
    """The text with nothing under that heading, nor the heading itself."""
    return _put(body, title, "") if section_text(body, title) else body


def text_of_hosts(shared: str | None, here: str | None, *, is_copy: bool) -> str | None:
    """Which body counts: the one that hosts share, or this host's own, which somebody has edited.

    A copy of an earlier shared one does not count, however old it is.
    """
    return shared if here is None or is_copy else here


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


def _read_lines(review_section: str) -> Iterator[tuple[str, Kind]]:
    """The lines that are neither blank, code nor quoted; the last one marked if it has no end.

    A line without a quote mark is given even where Markdown reads it as the end of a quote.
    """
    lines = one_newline(review_section).split("\n")
    lines[-1] += _CUT
    blocks = Blocks()
    for line in lines:
        kind = blocks.feed(line)
        if kind not in _SKIPPED or (kind is Kind.QUOTE and ">" not in line):
            yield line, kind


def _takes_back(line: str) -> bool:
    """Whether a line below a PASS says FAIL, gives a verdict again, or is a P0 or a P1."""
    return bool(_OTHER_VERDICT.search(line) or _BLOCKING_LINE.match(line))


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
