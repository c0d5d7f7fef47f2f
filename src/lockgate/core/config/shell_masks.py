"""Whether a shell command could fail at all: what turns every failure of it into a success.

It reads the command as far as it is plain: lists, pipelines, quotes. Whatever it does not know (a
loop, a function, a here-document) may fail, so what is said to be masked is masked.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

ALWAYS_SUCCEED = frozenset({":", "echo", "printf", "true"})
PASS_ON = frozenset(
    {"cat", "head", "less", "more", "nl", "sort", "tail", "tee", "ts", "uniq", "wc"}
)
SHELLS = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})
DEEPEST = 3  # shells within shells
LONGEST = 10_000  # characters that are read
_ENDS = frozenset({";", "&", "\n"})

_TOKEN = re.compile(
    r"""[ \t]*(?:
      (?P<skip>  \\\n )
    | (?P<note>  (?:(?<=[\s;&|(])|\A)\#[^\n]* )
    | (?P<mark>  && | \|\| | \|& | &> | [0-9]*[<>]+(?:&[0-9-]*)? | [|;&\n()] )
    | (?P<word>  (?: [^\s|;&()<>'"\\`$] | \\[\s\S] | '[^']*' | "(?:[^"\\]|\\[\s\S])*"
                   | \$\([^()]*\) | `[^`]*` | \$ )+ )
    )""",
    re.VERBOSE,
)


class Ends(Struct, frozen=True):
    """How a piece of shell may end: go on with these exits, or leave the shell with those.

    `why` is there where it could have failed, and something behind it saw to it that it cannot.
    """

    goes_on: frozenset[bool] = frozenset[bool]()
    leaves: frozenset[bool] = frozenset[bool]()
    why: str = ""

    @property
    def fails(self) -> bool:
        return False in self.goes_on | self.leaves


class Options(Struct, frozen=True):
    """What the shell was told about failures."""

    stops: bool = False  # set -e
    pipes: bool = False  # set -o pipefail


WELL = frozenset({True})
BADLY = frozenset({False})
EITHER = WELL | BADLY
NEVER = frozenset[bool]()


def masked(command: str) -> str:
    """Why this command never fails, in words; empty where it can."""
    if len(command) > LONGEST:
        return ""
    ends = _read(command, Options(), DEEPEST)
    if ends is None or ends.fails:
        return ""
    return ends.why or "it does nothing that could fail"


def _read(command: str, options: Options, depth: int) -> Ends | None:
    """None where it is not plain."""
    tokens = _tokens(command)
    return None if tokens is None else _script(tokens, options, depth)


def _tokens(command: str) -> list[str] | None:
    found: list[str] = []
    place, end = 0, len(command.rstrip())
    while place < end:
        match = _TOKEN.match(command, place, end)
        if match is None or match.end() == place:
            return None
        place = match.end()
        if match["word"] or match["mark"]:
            found.append(match["word"] or match["mark"])
    return None if any("<<" in it and it[0] not in "'\"" for it in found) else found


def _script(tokens: Sequence[str], options: Options, depth: int) -> Ends:
    """One list after the other; the last one's exit is the whole's."""
    now = Ends(goes_on=WELL)
    before: str = ""
    for words, end in _split(tokens, _ENDS):
        if not words:
            continue
        if not now.goes_on:
            break
        ends = Ends(WELL, why=f"`{_short(words)} &` is not waited for") if end == "&" else None
        ends = ends or _list(words, options, depth)
        lost = before if now.fails and not ends.fails else ""
        leaves = now.leaves | ends.leaves | (ends.goes_on & BADLY if options.stops else NEVER)
        why = ends.why or (f"`; {_short(words)}` has the last word" if lost else "")
        now, before = Ends(ends.goes_on, leaves, why), _short(words)
        options = _told(words, options)
    return now


def _list(tokens: Sequence[str], options: Options, depth: int) -> Ends:
    """Commands joined by && and ||, from the left."""
    now = Ends(goes_on=WELL)
    joint = "&&"
    for words, following in _split(tokens, frozenset({"&&", "||"})):
        ends = _pipeline(words, options, depth)
        goes = WELL if joint == "&&" else BADLY
        kept = now.goes_on - goes
        reached = bool(now.goes_on & goes)
        after = Ends(
            kept | (ends.goes_on if reached else NEVER),
            now.leaves | (ends.leaves if reached else NEVER),
            now.why,
        )
        if joint == "||" and now.fails and not after.fails:
            after = replace(after, why=f"`|| {_short(words)}` makes a success of every failure")
        now = after if after.why or after.fails else replace(after, why=ends.why)
        joint = following
    return now


def _pipeline(tokens: Sequence[str], options: Options, depth: int) -> Ends:
    parts = [words for words, _ in _split(tokens, frozenset({"|", "|&"}))]
    last = _simple(parts[-1], depth)
    if len(parts) == 1 or options.pipes:
        return last if len(parts) == 1 else Ends(EITHER)
    name = _name(parts[-1])
    if name in PASS_ON:
        return Ends(WELL, why=f"of a pipeline the last exit counts, and `{name}` does not fail")
    return Ends(EITHER if last.leaves else last.goes_on, why=last.why)


def _simple(words: Sequence[str], depth: int) -> Ends:
    said = [it for it in words if not _assigns(it)]
    match said:
        case []:
            return Ends(EITHER if words else WELL)
        case ["exit", "0"]:
            return Ends(leaves=WELL)
        case ["exit" | "exec", *_]:
            return Ends(leaves=EITHER)
        case [name, *_] if name in ALWAYS_SUCCEED and "(" not in words:
            return Ends(WELL)
        case [name, *rest] if name.rpartition("/")[2] in SHELLS and depth:
            return _inner(rest, depth)
        case _:
            return Ends(EITHER)


def _inner(rest: Sequence[str], depth: int) -> Ends:
    """`bash -euo pipefail -c 'that'`: what that comes to."""
    flags = [it for it in rest if it.startswith("-")]
    quoted = [it for it in rest if it[:1] in "'\""]
    if not any(re.fullmatch(r"-[a-z]*c", it) for it in flags) or not quoted:
        return Ends(EITHER)
    options = _told(["set", *rest[: rest.index(quoted[0])]], Options())
    ends = _read(quoted[0][1:-1], options, depth - 1)
    return Ends(EITHER) if ends is None else Ends(ends.goes_on | ends.leaves, why=ends.why)


def _told(words: Sequence[str], options: Options) -> Options:
    if not words or words[0] != "set":
        return options
    short = "".join(it[1:] for it in words if re.fullmatch(r"-[a-z]+", it))
    return Options(
        stops=options.stops or "e" in short or "errexit" in words,
        pipes=options.pipes or "pipefail" in words,
    )


def _split(tokens: Sequence[str], marks: frozenset[str]) -> Iterator[tuple[Sequence[str], str]]:
    """The parts between these marks, each with the mark behind it; brackets hold together."""
    begin = depth = 0
    for place, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        if token in marks and depth <= 0:
            yield tokens[begin:place], token
            begin = place + 1
    yield tokens[begin:], ""


def _assigns(word: str) -> bool:
    return re.match(r"[A-Za-z_]\w*=", word) is not None


def _name(words: Sequence[str]) -> str:
    said = [it for it in words if not _assigns(it)]
    return said[0].rpartition("/")[2] if said else ""


def _short(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= 30 else f"{text[:29]}…"  # noqa: PLR2004 - as much as fits a line
