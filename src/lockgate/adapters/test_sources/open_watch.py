"""Notes which files of the tree base's own tests open, for these files belong to the tests.

It is a program of its own, copied into a tree of base and loaded there by the test runner. Which
files are tests stands in the JSON file of its own name; what it saw it leaves in $OUT as JUnit.
Modules do not count: what a test imports is mostly the code that it tests.
"""

import atexit
import inspect
import json
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any
from xml.sax.saxutils import quoteattr

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
AT = HERE / "at"  # says where reports go
OUT = AT.read_text("utf-8") if AT.is_file() else ""
MOST = 2000  # files
CODE = (".py", ".pyc", ".pyi", ".so")
PLAN: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
TESTS = {str(ROOT / it) for it in PLAN["tests"]}

_opened: set[str] = set()


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if event != "open" or not isinstance(args[0], str | bytes) or len(_opened) >= MOST:
        return
    path = os.fsdecode(args[0])
    if not path.endswith(CODE) and _asked_by_a_test(inspect.currentframe()):
        _opened.add(path if path.startswith("/") else f"{_folder()}/{path}")


def _asked_by_a_test(frame: FrameType | None) -> bool:
    """Whether the nearest code of the tree is a test's."""
    top = f"{ROOT}/"
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(top) and not file.startswith(f"{HERE}/"):
            return file in TESTS
        frame = frame.f_back
    return False


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _leave() -> None:
    lines: list[str] = []
    for path in sorted(_opened):
        real = Path(path).resolve()
        if real.is_relative_to(ROOT) and real.is_file():
            name = quoteattr(str(real.relative_to(ROOT)))
            lines.append(f"<testcase classname={quoteattr(PLAN['nonce'])} name={name}/>")
    if not lines:
        return
    text = f'<testsuite name="files">{"".join(lines)}</testsuite>'
    (Path(OUT) / f"files-{os.getpid()}.xml").write_text(text, "utf-8", "backslashreplace")


if OUT:
    sys.addaudithook(_hear)
    atexit.register(_leave)
