"""Versions that differ are said, with what to do."""

import pytest
from msgspec.structs import replace

from lockgate.core.model.versions import RESTART, Versions, mismatches

SAME = Versions(program="2.0", orchestrator="2.0", runners={"a.1": "2.0"}, schema=9, known=9)


@pytest.mark.parametrize(
    ("changed", "says", "fix"),
    [
        ({"orchestrator": "1.9"}, "the orchestrator is version 1.9, and this is 2.0", RESTART),
        ({"orchestrator": ""}, "version an older one, and", RESTART),
        ({"schema": 10}, "version 10 of the schema, and this program knows 9", "upgrade this"),
        ({"runners": {"a.1": "2.0", "b.1": "", "c.1": "1.9"}}, "b.1 (no version), c.1 (1.9)", ""),
    ],
)
def test_what_differs_is_said(changed, says, fix) -> None:
    [found] = mismatches(replace(SAME, **changed))

    assert says in found.what
    assert found.fix.startswith(fix)


def test_nothing_is_said_of_what_fits_together() -> None:
    assert list(mismatches(SAME)) == []
    assert list(mismatches(replace(SAME, orchestrator=None, runners={}, schema=8))) == []
