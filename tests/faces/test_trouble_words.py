"""What people read where something could not be done: it is said once, and names its cause."""

import re

from lockgate.core.config.baseline import Timed, measured
from lockgate.core.discovery.repairs import Tried
from lockgate.core.lifecycle.advice import Surroundings, advice
from lockgate.core.lifecycle.needs import need_of
from lockgate.core.model.results import Broken
from lockgate.core.model.task import Status
from lockgate.faces.cli.setup.progress import Line
from lockgate.faces.words import setup
from lockgate.faces.words import task as words
from lockgate.services.task.views import Why
from tests.given import a_task, evidence

NPM = """the set-up did not finish: `npm ci` exited 1: npm warn EBADENGINE Unsupported engine {
npm warn EBADENGINE   package: 'cookie@2.0.1'
npm warn deprecated glob@10.5.0: Support for old versions may be purchased
npm error code E404
npm error 404 Not Found - GET https://registry.example.com/top-sites-1.1.225.tgz
"""


def broken(why: str) -> Tried:
    return Tried(baseline=measured("tests", "npm test", (Timed(Broken("tests", why), 1.0),)))


def test_why_a_task_cannot_go_on_is_said_once_with_what_continues_it() -> None:
    task = a_task(Status.WORKING, troubled="the disk is full")
    seen = Why(task, advice(evidence(task), Surroundings()), (), need_of(task))

    state, need, next, *_ = words.why_text(seen).splitlines()

    assert state == f"{task.id} is working."
    assert need == "It needs you: Lockgate cannot go on: the disk is full"
    assert next.endswith("to start one: lockgate up --detach")


def test_a_state_alone_says_what_the_task_needs() -> None:
    task = a_task(Status.WORKING, troubled="the disk is full")

    assert words.state_text(task) == f"{task.id} is working, needs you: the disk is full"


def test_a_set_up_that_failed_is_told_by_its_command_and_its_errors() -> None:
    told = "\n".join(setup.tried_lines(broken(NPM), "main"))

    assert "why: the set-up did not finish: `npm ci` exited 1" in told
    assert told.endswith("-1.1.225.tgz")
    assert "npm error code E404" in told
    assert "purchased" not in told


def test_without_an_error_the_last_lines_are_told() -> None:
    said = "\n".join(("`make deps` exited 1:", *(f"line {it}" for it in range(20))))

    told = list(setup.tried_lines(broken(said), "main"))

    assert [it.strip() for it in told[-7:]] == [
        "why: `make deps` exited 1:",
        *(f"line {it}" for it in range(14, 20)),
    ]


def test_the_moving_line_parts_what_runs_from_what_it_says() -> None:
    line = Line()
    line.say("tests: .venv/bin/python -m pytest -q --junitxml=$OUT/junit.xml")
    quiet = line.drawn(60)
    line.hear(b"Collecting a\nInstalling  build dependencies: still running and running\n")

    assert re.fullmatch(r"▸ \d+ s  tests: \.venv/bin/py…", quiet)
    assert re.fullmatch(r"▸ \d+ s  tests: \S+… │ Installing build .*…", line.drawn(60))
    assert len(line.drawn(60)) < 60
