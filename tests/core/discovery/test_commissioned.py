"""What an agent is asked for, how its proposal is read, and when it is accepted."""

import pytest
from msgspec.structs import replace

from lockgate.core.config.baseline import Baseline, Colour
from lockgate.core.discovery.commissioned import asked, proposed, why_not
from lockgate.core.discovery.found import Package, Plan, Seen
from lockgate.core.discovery.repairs import Tried
from lockgate.core.model.findings import Finding, Priority


def test_an_agent_is_told_what_was_found_without_it() -> None:
    prompt = asked(Plan((Package(test=Seen("make test", "Makefile")),)))

    assert "- test: make test (found in Makefile)" in prompt
    assert "- setup: not found" in prompt


def test_a_proposal_for_the_whole_repository() -> None:
    text = 'test = " make test "\nsetup = "npm ci"\ninputs = ["package.json", 3]\ntypecheck = ""\n'

    assert proposed(text, "claude") == Plan(
        (
            Package(
                test=Seen("make test", "claude"),
                setup=Seen("npm ci", "claude"),
                inputs=("package.json",),
            ),
        )
    )


def test_a_proposal_for_several_packages() -> None:
    text = """
        [[package]]
        path = "./services/api/"
        test = "make test"
        inputs = ["go.mod"]
        [[package]]
        path = "."
        test = "make check"
    """

    found = proposed(text, "claude")

    assert isinstance(found, Plan)
    assert [(it.path, it.name) for it in found.packages] == [("services/api", "api"), ("", "top")]
    assert found.packages[0].inputs == ("services/api/go.mod",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("test = [", "lockgate-setup.toml is no TOML: "),
        ("", "lockgate-setup.toml names no `test`"),
        ("test = 3", "lockgate-setup.toml names no `test`"),
        ("package = 3", "lockgate-setup.toml names no `test`"),
        ("package = [3]", "lockgate-setup.toml names no `test`"),
        ("[[package]]\npath = 'a'\ntest = 'x'\n[[package]]", "lockgate-setup.toml names no `test`"),
        ("path = '../x'\ntest = 'x'", "lockgate-setup.toml names a `path` outside of"),
        ("path = '/x'\ntest = 'x'", "lockgate-setup.toml names a `path` outside of"),
    ],
)
def test_what_cannot_be_tried_is_told(text: str, why: str) -> None:
    found = proposed(text, "claude")

    assert isinstance(found, str)
    assert found.startswith(why)


GREEN = Baseline(
    name="tests",
    command="make test",
    colour=Colour.GREEN,
    runs=3,
    passed=3,
    seconds=1.0,
    slow=False,
)
ACCEPTED = Tried(baseline=GREEN, broke="a.py", noticed=True, faults=3, wanted=3)
RED = replace(GREEN, colour=Colour.RED, passed=0)
FINDING = Finding(Priority.P1_MAJOR, "boom")


@pytest.mark.parametrize(
    ("tried", "why"),
    [
        ([ACCEPTED], ""),
        ([ACCEPTED, replace(ACCEPTED, baseline=replace(RED, name="typecheck"))], ""),
        ([], "no command of it tests anything"),
        ([replace(ACCEPTED, baseline=RED)], "`make test` fails on main"),
        (
            [replace(ACCEPTED, baseline=replace(RED, findings=(FINDING,)))],
            "`make test` fails on main: boom",
        ),
        (
            [replace(ACCEPTED, baseline=replace(GREEN, colour=Colour.FLAKY, passed=2))],
            "`make test` passed in 2 of 3 runs on main",
        ),
        (
            [replace(ACCEPTED, baseline=replace(GREEN, colour=Colour.BROKEN, why="no set-up"))],
            "`make test` could not be run: no set-up",
        ),
        (
            [replace(ACCEPTED, broke="", noticed=False)],
            "no source file was found to break, so nobody saw the tests fail",
        ),
        (
            [replace(ACCEPTED, noticed=False)],
            "`make test` passes with the source broken, so it does not test it",
        ),
        ([replace(ACCEPTED, faults=1)], "`make test` turned red on 1 faults, not on 3"),
    ],
)
def test_only_what_is_green_in_each_run_and_red_on_each_fault_is_accepted(
    tried: list[Tried], why: str
) -> None:
    assert why_not(tried, "main") == why
