"""The environment of a program that a test kills: coverage would cost it half its time."""

import os
from collections.abc import Mapping


def unmeasured(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Without coverage, which learns nothing from a program that is killed."""
    given = os.environ if environ is None else environ
    return {name: it for name, it in given.items() if not name.startswith("COVERAGE_")}
