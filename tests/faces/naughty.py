"""Strings that somebody will pass one day: as an id, as a branch, as a summary."""

import random
from collections.abc import Sequence

import pytest
from _pytest.mark import ParameterSet

TRAVERSAL = (
    ".", "..", "../", "../..", "../../etc/passwd", "/etc/passwd", "/", "//", "./x", "x/../y",
    "..\\..\\windows", "C:\\", "file:///etc/passwd", "%2e%2e%2f", "~", "~root", "tasks/x", "a//b",
    "a/./b", "/dev/null", "/proc/self/environ", "x/", "/x", ".git", ".git/config", "a/.git/b",
)  # fmt: skip
OPTIONS = (
    "-", "--", "-x", "--no-such-option", "-C/tmp", "--upload-pack=touch x", "-rf", "---", "-1",
    "--force", "--json=1", "--exec=sh",
)  # fmt: skip
GIT = (
    "HEAD", "@", "@{", "@{-1}", "x@{1}", "refs/heads/main", "a..b", "a...b", "x^", "x~1", "x:y",
    "x.lock", "x.lock/y", ".x", "x.", "x/.y", "a b", "x?", "x*", "[x", "x\\y", "^x", ":x", "x~",
    "FETCH_HEAD", "ORIG_HEAD", "main^{commit}", "-main", "stash@{0}",
)  # fmt: skip
SHELL = (
    "$(touch x)", "`touch x`", "; touch x", "x; touch x", "| touch x", "&& touch x", "> x", "< x",
    "$HOME", "${HOME}", "!x", "x & y", "*", "?", "[a-z]", "{a,b}", "#x", "x\\", "%s", "%n%n",
    "{0}", "{wait}", "%(x)s",
)  # fmt: skip
QUOTES = (
    "'", '"', "''", '""', "'x'", '"x"', "\\'", "\u2018x\u2019", "it's", "' OR '1'='1", "\\",
    "'; DROP TABLE tasks; --", '"; DROP TABLE tasks; --', "1 OR 1=1", "x%", "_", "%", "x' --",
    "Robert'); DROP TABLE Students;--", "1;SELECT 1", "x\\'; --",
)  # fmt: skip
CONTROL = (
    "\t", "\n", "\r", "\r\n", "x\ny", "x\rstatus: done", "\x01", "\x07", "\x08", "\x0b", "\x0c",
    "\x1b", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b]52;c;ZXZpbA==\x07", "\x1bc", "\x7f",
    "\x80", "\x85", "\x9b2J", "\x9d52;c;x\x9c", "\n---\nstatus: done\n---\n", "x\n## Handoff\ny",
)  # fmt: skip
UNICODE = (
    "\u00a0", "\u00ad", "\u061c", "\u180e", "\u200b", "\u200d", "\u200e", "\u200f", "\u2028",
    "\u2029", "\u202a", "\u202e", "\u202egpj.exe", "\u2060", "\u2066x\u2069", "\ufeff", "\ufffd",
    "\uffff", "\U0010ffff", "\ud800", "\udcff", "x\udc80y", "é", "e\u0301", "ﬁx", "\u017f", "İ",
    "修复登录", "исправить", "إصلاح", "🙂", "👩‍👩‍👧", "🏳️‍🌈", "Ω≈ç√∫", "\uff46\uff55", "\u0430", "ß",
    "\U0001d4b3",
    "Z̮̞̠͙͔ͅḀ̗̞͈̻̗Ḷ͙͎̯̹̞͓G̻O̭̗̮",
)  # fmt: skip
YAML = (
    "yes", "no", "null", "~", "true", "0", "-0", "1e3", "0x10", "1_000", "2024-01-01", "[]", "{}",
    "- x", "? x", ": x", "x: y", "x #y", "!!python/object:os.system x", "&a", "*a", "|", ">",
    "%YAML 1.1", "---", "...", "<<", "=", "key: [1,2", "'unclosed", '"unclosed', "@x",
)  # fmt: skip
RESERVED = (
    "con", "nul", "aux", "com1", "lpt1", "NUL.txt", "main", "none", "None", "undefined", "NaN",
    "Infinity", "lockgate", "TASK.md", "deleted", "logs", "<script>alert(1)</script>",
    "${jndi:ldap://x}", "{{7*7}}", "__proto__", "constructor",
)  # fmt: skip
LONG = (
    "a" * 41,
    "a" * 201,
    "a" * 255,
    "a" * 300,
    "a" * 5_000,
    "é" * 2_000,
    "a/" * 600 + "a",
    "a" * 100_000,
)

NAUGHTY = tuple(
    dict.fromkeys(
        (
            "", " ", "  ", *TRAVERSAL, *OPTIONS, *GIT, *SHELL, *QUOTES, *CONTROL, *UNICODE,
            *YAML, *RESERVED, *LONG,
        )
    )
)  # fmt: skip
BRANCHES = tuple(
    dict.fromkeys(
        ("", " ", *TRAVERSAL, *OPTIONS, *GIT, *CONTROL, *UNICODE, *LONG, "{}", "'", "con")
    )
)


def some_of(strings: Sequence[str], count: int = 60) -> list[ParameterSet]:
    """All of them, but only so many in `make check`: the same ones each time, from every kind."""
    chosen = set(random.Random(len(strings)).sample(strings, count))  # noqa: S311 - a sample
    kinds = (TRAVERSAL, OPTIONS, GIT, SHELL, QUOTES, CONTROL, UNICODE, YAML, RESERVED, LONG)
    chosen |= {"", *(it for kind in kinds for it in kind[:2])}
    return [
        pytest.param(it, marks=() if it in chosen else pytest.mark.slow, id=ascii(it)[:40])
        for it in strings
    ]
