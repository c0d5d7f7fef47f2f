"""Secrets that Lockgate hands out: which values they are, in which forms, and texts without them.

The runner of a session loads this too, so it takes nothing that is slow to load.
"""

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

LEAST = 16  # characters: a shorter value would be found where it is no secret
# A variable whose name says that its value is one; an agent's model or its address is none.
_NAMES = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|SECRETS|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PAT)(?:_|$)",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"://([^/@\s]+)@")  # in the address of a proxy
_ASSIGNED = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*[=:]\s*(.*?)\s*$")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\t": "\\t"}

Hide = Callable[[str], str]


class Secret(NamedTuple):
    name: str
    value: str


def secrets_in(given: Mapping[str, str], marked: Iterable[str] = ()) -> tuple[Secret, ...]:
    """Those among variables: by their names, those that are marked, and logins in addresses."""
    always, found = frozenset(marked), list[Secret]()
    for name, value in given.items():
        if name in always or _NAMES.search(name):
            found.append(Secret(name, value))
        found += (Secret(name, it) for it in _LOGIN.findall(value))
    return _lines(found)


def secrets_in_file(text: str) -> tuple[Secret, ...]:
    """Every value of its `NAME=VALUE` lines, without its quotes."""
    assigned = (_ASSIGNED.fullmatch(line) for line in text.splitlines())
    return _lines(Secret(it[1], _unquoted(it[2])) for it in assigned if it)


def forms_of(secret: Secret) -> tuple[bytes, ...]:
    """How it may stand in a text: as it is, quoted, in base64 at any place, percent-encoded."""
    value = secret.value.encode("utf-8", "surrogateescape")
    quoted = "".join(_ESCAPES.get(it, it) for it in secret.value).encode("utf-8", "surrogateescape")
    ascii_ = re.sub(
        r"[^\x00-\x7f]", lambda it: f"\\u{ord(it[0]):04x}", quoted.decode("utf-8", "replace")
    )
    escaped = ascii_.encode()
    inside = [_base64(value, place) for place in range(3)]
    urlsafe = [it.replace(b"+", b"-").replace(b"/", b"_") for it in inside]
    percent = b"".join(bytes((it,)) if it in _PLAIN else b"%%%02X" % it for it in value)
    plus, path = percent.replace(b"%20", b"+"), percent.replace(b"%2F", b"/")
    lower = re.sub(rb"%..", lambda it: it[0].lower(), percent)
    listed = (value, quoted, escaped, *inside, *urlsafe, percent, plus, path, lower)
    return tuple(dict.fromkeys(listed))


def as_it_is(text: str) -> str:
    return text


def held_back(text: bytes, forms: Iterable[bytes]) -> int:
    """How many bytes at its end may be the beginning of one of these, the rest yet to come."""
    longest = 0
    for form in forms:
        for length in range(min(len(form) - 1, len(text)), longest, -1):
            if text.endswith(form[:length]):
                longest = length
                break
    return longest


def hiding(secrets: Iterable[Secret]) -> Hide:
    """What puts `[secret NAME]` in the place of each of them."""
    hide = hiding_bytes(secrets)

    def hidden(text: str) -> str:
        seen = text.encode("utf-8", "surrogatepass")
        shown = hide(seen)
        return text if shown is seen else shown.decode("utf-8", "surrogatepass")

    return hidden


def hiding_bytes(secrets: Iterable[Secret]) -> Callable[[bytes], bytes]:
    """The longest forms first, so that one that is part of another leaves nothing of it."""
    known = {form: it.name for it in secrets for form in forms_of(it)}
    ordered = sorted(known, key=len, reverse=True)

    def hidden(text: bytes) -> bytes:
        for form in ordered:
            if form in text:
                text = text.replace(form, f"[secret {known[form]}]".encode())
        return text

    return hidden


def _lines(found: Iterable[Secret]) -> tuple[Secret, ...]:
    """A value of several lines is several; a key's first and last line tell nothing."""
    apart = (Secret(it.name, line.strip()) for it in found for line in it.value.splitlines())
    kept = (it for it in apart if len(it.value) >= LEAST and not it.value.startswith("-----"))
    return tuple({it.value: it for it in kept}.values())


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _base64(value: bytes, place: int) -> bytes:
    """What of its base64 is the same whatever stands before and behind it."""
    encoded = b2a_base64(b"\0" * place + value, newline=False)
    return encoded[(place * 8 + 5) // 6 : (place + len(value)) * 8 // 6]
