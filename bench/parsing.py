"""Reading TASK.md: its artifacts by our scanner, beside markdown-it-py's parse into tokens."""

from functools import partial
from importlib import import_module
from itertools import count, cycle
from pathlib import Path

from bench.harness import AtMost, Faster, Measure, Work, clocked, interleave, main, say
from lockgate.core.text.task_file import Verdict, parse_task_artifacts

ROUNDS = 30
# Bytes, and how often each is read for one time.
SIZES = {"10 KB": (10_000, 50), "100 KB": (100_000, 5), "1 MB": (1_000_000, 1)}
SMALL, LARGE = "10 KB", "1 MB"
# A section's share of the file; what an agent notes down is the most of it.
SHARES = {"Context": 0.2, "Questions": 0.05, "Notes": 0.5, "Handoff": 0.15, "Review": 0.1}

PROSE = """\
The session {n} is looked up by its cookie before the redirect is built, so `next` may point back at
the login page. *Both* places have to agree, see [the issue](https://example.org/issues/{n}) and the
note in **auth/session.py**; nothing else reads that value.
"""
ITEMS = """\
- `auth/session.py` keeps the target for {n} seconds
- tests that were red before:
  - `test_login_redirects_{n}`, because the cookie is set twice
  - `test_logout`, which has nothing to do with it
    and is left alone
- 3 files changed, 41 lines added

1. Reproduce it with a fresh profile.
2. Follow the redirect {n} times.
3) Compare.
"""
CODE = """\
```python
def target(request: Request) -> str:
    ## Not a heading: it stands in code
    path = request.args.get("next", "/")
    return "/" if path.startswith("/login") else path  # {n}
```
"""
OUTPUT = """\
- The run afterwards:

  ```
  $ pytest -q tests/test_login_{n}.py
  ....                                                             [100%]
  4 passed in 0.{n}s
  ```

      an indented remark
"""
TABLE = """\
| case | before | after |
|------|-------:|:-----:|
| fresh profile | loops | /home |
| cookie {n} | loops | /account |
"""
REST = """\
### Attempt {n}

> The reviewer asked whether a relative path is safe.
> It is, since the host is fixed.

<!-- measured on the staging machine -->

---
"""
BLOCKS = (PROSE, ITEMS, PROSE, CODE, PROSE, TABLE, OUTPUT, PROSE, REST)


def task_text(size: int) -> str:
    """A TASK.md's text of about so many bytes, the same each time."""
    parts: list[str] = []
    numbers = count(1)
    for title, share in SHARES.items():
        parts.append(f"## {title}\n\n" + ("PASS\n\n" if title == "Review" else ""))
        room = size * share
        for block in cycle(BLOCKS):
            text = block.format(n=next(numbers))
            if len(text) > room:
                break
            room -= len(text)
            parts.append(f"{text}\n")
    return "".join(parts)


def bench(_: Path) -> list[Measure]:
    say("\nparsing")
    texts = {name: task_text(size) for name, (size, _) in SIZES.items()}
    contenders: dict[str, Work] = {}
    for name, text in texts.items():
        contenders[name] = clocked(partial(_read, text), SIZES[name][1])
        contenders |= _peer(name, text)
    found = interleave(contenders, ROUNDS)
    measures = [
        Measure(
            name=f"parse {name}",
            ours=found[name],
            peer="markdown-it-py",
            theirs=found[_theirs(name)],
            target=Faster(20),
        )
        for name in texts
        if _theirs(name) in found
    ]
    per_byte = {name: found[name] / len(texts[name]) for name in texts}
    return [*measures, _linear(per_byte)]


def _read(text: str) -> None:
    found = parse_task_artifacts(text)
    assert found.verdict is Verdict.PASS, found.problems  # noqa: S101  the text has one


def _linear(per_byte: dict[str, float]) -> Measure:
    return Measure(
        name=f"parse, {LARGE} brought to 1 KB",
        ours=per_byte[LARGE] * 1000,
        peer=f"{SMALL} brought to 1 KB",
        theirs=per_byte[SMALL] * 1000,
        target=AtMost(1.5),
    )


def _peer(name: str, text: str) -> dict[str, Work]:
    try:
        markdown_it = import_module("markdown_it")
    except ImportError:
        say("  markdown-it-py: not measured, it is not installed (pip install '.[bench]')")
        return {}
    parser = markdown_it.MarkdownIt("commonmark")
    return {_theirs(name): clocked(lambda: parser.parse(text))}


def _theirs(name: str) -> str:
    return f"markdown-it-py, {name}"


if __name__ == "__main__":
    main(bench)
