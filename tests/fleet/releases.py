"""The release before this one: a copy of the package whose forms and schema are one lower."""

import re
import shutil
from pathlib import Path

import lockgate

VERSION = "0.0.9"


def release_before(place: Path) -> Path:
    """Made there; a program that finds this directory first runs that release."""
    package = place / "lockgate"
    if package.exists():
        return place
    source, unwritten = Path(lockgate.__file__).parent, shutil.ignore_patterns("__pycache__")
    shutil.copytree(source, package, ignore=unwritten)
    _change(package / "__init__.py", r'^__version__ = ".*"$', f'__version__ = "{VERSION}"')
    _lower(package / "adapters" / "store" / "job_forms.py", "FORM")
    for dialect in ("postgres", "sqlite"):
        newest = max((package / "adapters" / "store" / "migrations" / dialect).glob("*.sql"))
        newest.unlink()
    return place


def _lower(file: Path, name: str) -> None:
    found = re.search(rf"^{name} = (\d+)", file.read_text(), re.MULTILINE)
    assert found, f"{file} has no {name}"
    _change(file, rf"^{name} = \d+", f"{name} = {int(found[1]) - 1}")


def _change(file: Path, old: str, new: str) -> None:
    text, times = re.subn(old, new, file.read_text(), flags=re.MULTILINE)
    assert times == 1, f"{file}: {old} is there {times} times"
    file.write_text(text)
