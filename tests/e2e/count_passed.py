"""Says by a report how many tests a run's output counts as passed; standard library only.

    python3 -c "$(cat count_passed.py)" DIRECTORY LEAST

reads DIRECTORY/said, writes DIRECTORY/junit.xml with as many test cases, and fails where fewer than
LEAST have passed.
"""

import re
import sys
from pathlib import Path

# How test runners close: a line counts by the first of these that it is like.
CLOSING = (
    r"^\s*Tests:?\s+.*?(\d+) passed",  # jest, vitest
    r"^test result: \w+\. (\d+) passed",  # cargo
    r"^(?:=+ )?(?:\d+ \w+, )*(\d+) passed",  # pytest
    r"^\s*(\d+) passing\b",  # mocha
    r"^[#ℹ] pass\s+(\d+)",  # node, tap, tape # noqa: RUF001 - as node writes it
    r"^\s*(\d+) tests? passed",  # ava
    r"^\s*Passed:\s+(\d+)",  # uvu
)
GO = re.compile(r"^\s*--- PASS: ", re.MULTILINE)
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\s*^(?:OK|FAILED)(.*)$", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def passed(said: str) -> int:
    text = COLOUR.sub("", said)
    closed = (
        next(filter(None, (re.match(it, line) for it in CLOSING)), None)
        for line in text.splitlines()
    )
    if found := [int(it[1]) for it in closed if it]:
        return sum(found)
    ran = UNITTEST.findall(text)
    without = sum(int(n) for _, rest in ran for n in re.findall(r"=(\d+)", rest))
    return len(GO.findall(text)) or sum(int(it) for it, _ in ran) - without


def main(place: Path, least: int) -> int:
    said = (place / "said").read_text(encoding="utf-8", errors="replace")
    (place / "said").unlink()  # TAP there would be read as one more report
    number = passed(said)
    cases = "".join(f'<testcase classname="own" name="t{it}"/>' for it in range(number))
    (place / "junit.xml").write_text(f"<testsuite>{cases}</testsuite>", encoding="utf-8")
    sys.stdout.write(said[-3000:])
    return 0 if number >= least else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
