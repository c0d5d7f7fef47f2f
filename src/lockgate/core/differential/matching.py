"""Tests as they stand in files: which one a reported id means, and which one became which."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

_TOKENS = re.compile(r"\w+")
_STEMS = re.compile(r"\.(?:py|go|[cm]?[jt]sx?)\Z")


class SourceTest(Struct, frozen=True, kw_only=True):
    """One test in a file. `body` has neither comments nor the test's own name."""

    file: str
    line: int
    names: tuple[str, ...]  # what it stands in, then its own name
    body: str
    checks: int = 1  # how many things it asserts
    flexible: bool = False  # its own name goes on with what only a run knows

    @property
    def id(self) -> str:
        return "::".join((self.file, *self.names))


Tests = tuple[SourceTest, ...]
Tokens = tuple[str, ...]


class Place(Struct, frozen=True):
    """The test that an id means; `case` is what the id adds to it, such as its parameters."""

    test: SourceTest
    case: str = ""


class _Index(Struct):
    whole: dict[Tokens, list[SourceTest]] = field(default_factory=lambda: defaultdict(list))
    titles: dict[Tokens, list[SourceTest]] = field(default_factory=lambda: defaultdict(list))
    flexible: dict[str, list[SourceTest]] = field(default_factory=lambda: defaultdict(list))
    longest: int = 0


def placed(ids: Iterable[str], tests: Sequence[SourceTest]) -> dict[str, Place]:
    """Where each id's test stands; an id that could be two tests, or none, is not in it."""
    index = _indexed(tests)
    found = ((id, _place(id, index)) for id in ids)
    return {id: place for id, place in found if place}


def paired(
    gone: Iterable[SourceTest], new: Iterable[SourceTest]
) -> tuple[tuple[SourceTest, SourceTest], ...]:
    """Each with what it became: the same body, or the same name in another file; one to one."""
    left, right = sorted(set(gone), key=_order), sorted(set(new), key=_order)
    pairs: list[tuple[SourceTest, SourceTest]] = []
    for key in _LIKENESS:
        matched = list(_zipped(left, right, key))
        pairs.extend(matched)
        left = sorted(set(left) - {old for old, _ in matched}, key=_order)
        right = sorted(set(right) - {became for _, became in matched}, key=_order)
    return tuple(pairs)


_LIKENESS: tuple[Callable[[SourceTest], Hashable], ...] = (
    lambda it: (it.names, it.body),
    lambda it: (it.file, it.body),
    lambda it: it.body,
    lambda it: it.names,
)


def _zipped(
    left: Iterable[SourceTest],
    right: Iterable[SourceTest],
    key: Callable[[SourceTest], Hashable],
) -> Iterator[tuple[SourceTest, SourceTest]]:
    ours, theirs = _grouped(left, key), _grouped(right, key)
    for name, group in ours.items():
        yield from zip(group, theirs.get(name, ()), strict=False)


def _grouped(
    tests: Iterable[SourceTest], key: Callable[[SourceTest], Hashable]
) -> Mapping[Hashable, list[SourceTest]]:
    groups: dict[Hashable, list[SourceTest]] = defaultdict(list)
    for test in tests:
        groups[key(test)].append(test)
    return groups


def _order(test: SourceTest) -> tuple[str, int, str]:
    return test.id, test.line, test.body


def _indexed(tests: Sequence[SourceTest]) -> _Index:
    index = _Index()
    for test in tests:
        names = _tokens(" ".join(test.names))
        if not names:
            continue
        if test.flexible:
            index.flexible[names[0]].append(test)
        else:
            index.whole[names].append(test)
            index.longest = max(index.longest, len(names))
            if not test.file.endswith((".py", ".go")):
                index.titles[_tokens(test.names[-1])].append(test)
    return index


def _place(id: str, index: _Index) -> Place | None:
    for stem, case in _variants(id):
        test = _exact(_tokens(stem), index)
        if test:
            return Place(test, case)
    test = _begun(_tokens(id), index)
    return Place(test, id) if test else None


def _variants(id: str) -> Iterator[tuple[str, str]]:
    """The id as it is, without its parameters, without its sub-tests."""
    yield id, ""
    if id.endswith("]"):
        cut = id.find("[", id.rfind("::", 0, id.find("[")) + 1)
        yield id[:cut], id[cut:]
    cut = id.rfind("/")
    while cut > max(0, id.find("::")):
        yield id[:cut], id[cut:]
        cut = id.rfind("/", 0, cut)


def _exact(tokens: Tokens, index: _Index) -> SourceTest | None:
    for length in range(min(index.longest, len(tokens)), 0, -1):
        found = index.whole.get(tokens[-length:]) or index.titles.get(tokens[-length:])
        if found:
            return _nearest(found, tokens[:-length])
    return None


def _begun(tokens: Tokens, index: _Index) -> SourceTest | None:
    """The flexible test whose known beginning stands in the id."""
    found: dict[str, SourceTest] = {}
    for at, token in enumerate(tokens):
        for test in index.flexible.get(token, ()):
            names = _tokens(" ".join(test.names))
            if tokens[at : at + len(names)] == names:
                found[test.id] = test
    longest = max((len(" ".join(it.names)) for it in found.values()), default=0)
    best = [it for it in found.values() if len(" ".join(it.names)) == longest]
    return _nearest(best, tokens)


def _nearest(found: Sequence[SourceTest], before: Tokens) -> SourceTest | None:
    """The only one, or the one whose file the id names best."""
    scores = [_shared(_module(test.file), before) for test in found]
    best = max(scores, default=0)
    nearest = [test for test, score in zip(found, scores, strict=True) if score == best]
    return nearest[0] if len(nearest) == 1 and (best or _unnamed(nearest[0], before)) else None


def _unnamed(test: SourceTest, before: Tokens) -> bool:
    """An id that says nothing about a file may mean any; Python's always say the module."""
    return not (before and test.file.endswith(".py"))


def _module(file: str) -> Tokens:
    """What an id can say about the file: in Go only its directory."""
    named = file.rpartition("/")[0] if file.endswith(".go") else _STEMS.sub("", file)
    return _tokens(named)


def _shared(file: Tokens, before: Tokens) -> int:
    """How many of the file's last parts stand in the id, in order and without a gap."""
    for length in range(len(file), 0, -1):
        tail = file[-length:]
        if any(before[at : at + length] == tail for at in range(len(before) - length + 1)):
            return length
    return 0


def _tokens(text: str) -> Tokens:
    return tuple(_TOKENS.findall(text))
